#include "fork_handlers.h"

#include <dlfcn.h>

#include <atomic>

namespace {
constinit std::atomic<int> registered{0};
}  // namespace

int fork_handlers() {
  return registered;
}

// pthread_atfork calls libc's function of this name; the program's definition precedes it.
extern "C" __attribute__((visibility("default"))) int __register_atfork(void (*prepare)(), void (*parent)(),
                                                                        void (*child)(), void *object) {
  using Register = int (*)(void (*)(), void (*)(), void (*)(), void *);
  ++registered;
  return reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__register_atfork"))(prepare, parent, child, object);
}
