// A library preloaded after Ration: a signal arrives whenever Ration's core is about to be loaded.
#include <dlfcn.h>
#include <signal.h>
#include <string.h>

extern "C" __attribute__((visibility("default"))) void *dlopen(const char *file, int flags) {
  if (file != nullptr && strstr(file, "libration-core") != nullptr) {
    raise(SIGUSR1);
  }
  return reinterpret_cast<void *(*)(const char *, int)>(dlsym(RTLD_NEXT, "dlopen"))(file, flags);
}
