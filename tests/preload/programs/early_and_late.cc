// Fills the device at the time that FILL_AT names: `preinit` (before every constructor of the process), `constructor`
// and `destructor` of a library, `atexit`. Ration's own start or end must not interfere at any of them.
#include <stdlib.h>
#include <string.h>

#include "fill.h"

// In the library: a link to it needs a reference.
extern "C" void fill_in_library_at(const char *moment);

namespace {

void fill_at(const char *moment) {
  const char *asked = getenv("FILL_AT");
  if (asked != nullptr && strcmp(asked, moment) == 0) {
    preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
  }
}

// libc has not set `environ` yet: getenv finds nothing here.
void at_preinit(int, char **, char **environment) {
  for (; *environment != nullptr; ++environment) {
    if (strcmp(*environment, "FILL_AT=preinit") == 0) {
      preload::fill({&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2});
    }
  }
}

__attribute__((section(".preinit_array"), used)) void (*const preinit)(int, char **, char **) = &at_preinit;

}  // namespace

int main() {
  atexit([] { fill_at("atexit"); });
  fill_at("main");
  return 0;
}
