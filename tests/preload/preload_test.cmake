# ration_preload_test(NAME name COMMAND command...)
# One test of the built libration.so, preload.NAME; or, in tests/command, of the command, command.NAME. Its environment
# holds what harness.py, which it can import, needs to run programs under the library: PRELOAD_LIBRARIES (LD_PRELOAD's
# value: a sanitizer's runtime must come first), PRELOAD_BUILD, PRELOAD_PROGRAMS, PRELOAD_SANITIZE.
set(RATION_TESTED preload)
set(PRELOAD_PROGRAMS ${CMAKE_BINARY_DIR}/tests/preload/programs)
set(preload_libraries ${CMAKE_BINARY_DIR}/lib/libration.so)
if(RATION_SANITIZER_RUNTIME)
  file(REAL_PATH ${RATION_SANITIZER_RUNTIME} runtime)
  set(preload_libraries ${runtime}:${preload_libraries})
endif()

function(ration_preload_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "COMMAND")
  add_test(NAME ${RATION_TESTED}.${arg_NAME} COMMAND ${arg_COMMAND})
  set(environment "PRELOAD_LIBRARIES=${preload_libraries}" "PRELOAD_BUILD=${CMAKE_BINARY_DIR}"
    "PRELOAD_PROGRAMS=${PRELOAD_PROGRAMS}" "PRELOAD_SANITIZE=${RATION_SANITIZE}"
    "PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/preload")
  if(RATION_SANITIZE MATCHES "thread")
    # The first saves a second for each of hundreds of processes.
    list(APPEND environment
      "TSAN_OPTIONS=atexit_sleep_ms=0:print_suppressions=0:suppressions=${CMAKE_SOURCE_DIR}/tests/preload/thread_sanitizer.supp")
  endif()
  # The timeout only ends a hanging test: the slowest takes seconds.
  set_tests_properties(${RATION_TESTED}.${arg_NAME} PROPERTIES LABELS "quick;sim" TIMEOUT 240 ENVIRONMENT "${environment}")
endfunction()

# ration_preload_script(FAMILY NAME SCRIPT ARGUMENT...): SCRIPT_test.py of the calling folder as
# preload.FAMILY.NAME. It counts as one processor: the processes that it starts mostly wait for a
# device.
function(ration_preload_script family name script)
  ration_preload_test(NAME ${family}.${name}
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/${script}_test.py ${ARGN})
endfunction()
# The same with the full number of rounds.
function(ration_long_preload_script family name script)
  ration_preload_script(${family} long.${name} ${script} ${ARGN})
  set_tests_properties(preload.${family}.long.${name} PROPERTIES LABELS "long;sim" TIMEOUT 3600)
endfunction()
