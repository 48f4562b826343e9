// A library preloaded after Ration, for forks_at_start.cc: when Ration's core is about to be loaded, lets another
// thread fork, gives it time to, and then notes that the core is loaded. Sets errno, as loading a library may.
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "forks_at_start.h"

extern "C" __attribute__((visibility("default"))) void *dlopen(const char *file, int flags) {
  const auto behind = reinterpret_cast<void *(*)(const char *, int)>(dlsym(RTLD_NEXT, "dlopen"));
  const auto start = reinterpret_cast<LoadingCore *>(dlsym(RTLD_DEFAULT, "loading_core"));
  if (start == nullptr || file == nullptr || strstr(file, "libration-core") == nullptr) {
    return behind(file, flags);
  }
  start->begun.store(true);
  while (!start->forking.load()) {
    sched_yield();
  }
  // Few turns: on a busy machine each may take long, and no fork waits for ever.
  for (int turn = 0; turn < 50; ++turn) {
    sched_yield();
  }
  void *const core = behind(file, flags);
  start->done.store(true);
  errno = ENOENT;
  return core;
}
