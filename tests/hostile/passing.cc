// A library preloaded after another one: passes dlopen on and counts how often it is only asked whether a library is
// loaded.
#include <dlfcn.h>

namespace {
unsigned long long asked;
}

extern "C" __attribute__((visibility("default"))) unsigned long long passing_asked() {
  return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}

extern "C" __attribute__((visibility("default"))) void *dlopen(const char *file, int mode) {
  using Function = void *(*)(const char *, int);
  static Function next;
  if (next == nullptr) next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "dlopen"));
  if ((mode & RTLD_NOLOAD) != 0) __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
  return next(file, mode);
}
