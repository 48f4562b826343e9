// Tells the core that the main thread ends. After that the process ends with its last other thread, and the core has
// threads that sleep. Layer: preload. Threads: any. Called from: the program and its libraries, at any time.
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"

namespace ration::preload {
namespace {

using Exit = void (*)(void *);

// If the core has not started, no thread of ours exists.
void before_end() {
  const RationCoreAbi *core = started_core();
  if (core != nullptr && syscall(SYS_gettid) == getpid()) {
    core->main_thread_ends();
  }
}

}  // namespace
}  // namespace ration::preload

// Not declared under the name of pthread.h, whose noreturn attribute would rule out the tail jump. With the jump, a
// caller without unwind information is still the first frame that gets unwound, as without this library.
extern "C" __attribute__((visibility("default"))) void ration_pthread_exit(void *value) __asm__("pthread_exit");

void ration_pthread_exit(void *value) {
  using namespace ration::preload;
  before_end();
  const auto next = reinterpret_cast<Exit>(real().dlsym(RTLD_NEXT, "pthread_exit"));
  next(value);
}
