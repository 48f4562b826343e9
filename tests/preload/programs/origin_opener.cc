// Opens a library by a bare name that only this library's own RUNPATH ($ORIGIN/beside) can find.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) const char *open_beside() {
  void *beside = dlopen("libbeside.so", RTLD_NOW);
  return beside != nullptr ? "found" : dlerror();
}
