# RATION_OWN_NAMES: calls within a library stay in it, and none of an archive's names leave it. A linker that lacks these
# options has a blunter one, or none: the version scripts hide everything all the same.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,-Bsymbolic-functions RATION_BINDS_FUNCTIONS)
check_linker_flag(CXX -Wl,--exclude-libs,ALL RATION_EXCLUDES_LIBRARIES)
if(RATION_BINDS_FUNCTIONS)
  set(RATION_OWN_NAMES -Wl,-Bsymbolic-functions)
else()
  set(RATION_OWN_NAMES -Wl,-Bsymbolic)
endif()
if(RATION_EXCLUDES_LIBRARIES)
  list(APPEND RATION_OWN_NAMES -Wl,--exclude-libs,ALL)
endif()
