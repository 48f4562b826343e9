// The library of early_and_late.cc: its constructor runs before a preload's, its destructor after.
#include <stdlib.h>
#include <string.h>

#include "fill.h"

extern "C" __attribute__((visibility("default"))) void fill_in_library_at(const char *moment) {
  const char *asked = getenv("FILL_AT");
  if (asked != nullptr && strcmp(asked, moment) == 0) {
    preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
  }
}

__attribute__((constructor)) static void at_start() {
  fill_in_library_at("constructor");
}
__attribute__((destructor)) static void at_end() {
  fill_in_library_at("destructor");
}
