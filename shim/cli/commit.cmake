# The commit of the sources, as a C string for version.cc: cmake -DSOURCE=FOLDER -DOUT=FILE [-DCOMMIT=NAME] -P commit.cmake
# Run by every build, not by the configuration, which a commit does not repeat. OUT is written only if it changes.
cmake_minimum_required(VERSION 3.25)
set(text "${COMMIT}")
find_program(git git)
if(NOT text AND git)
  # A folder inside another project's repository has no commit of ours.
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel --short=12 HEAD
    OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE status)
  file(REAL_PATH ${SOURCE} source)
  if(status EQUAL 0 AND said MATCHES "^(.*)\n([0-9a-f]+)\n$" AND CMAKE_MATCH_1 STREQUAL source)
    set(text ${CMAKE_MATCH_2})
    # Without its locks: git in another terminal must not fail because of a build.
    execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks status --porcelain --untracked-files=no
      OUTPUT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND text -dirty)
    endif()
  endif()
endif()
if(text)
  set(text "commit ${text}, ")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "\"@text@\"\n" @ONLY)
