// Tells the core that the main thread ends: the process then ends with its last other thread, of which the core has
// some that sleep. Layer: preload. Threads: any. Called from: the program and its libraries, at any time.
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload.h"

namespace ration::preload {
namespace {

using Exit = void (*)(void *);

// A process whose core has not started has no thread of ours.
void before_end() {
  const RationCoreAbi *core = started_core();
  if (core != nullptr && syscall(SYS_gettid) == getpid()) {
    core->main_thread_ends();
  }
}

}  // namespace
}  // namespace ration::preload

// Not by the name of pthread.h, whose attribute would forbid the jump: the frame of a caller that has no unwind
// information is then the first that the end unwinds, as without this library.
extern "C" __attribute__((visibility("default"))) void ration_pthread_exit(void *value) __asm__("pthread_exit");

void ration_pthread_exit(void *value) {
  using namespace ration::preload;
  before_end();
  const auto next = reinterpret_cast<Exit>(real().dlsym(RTLD_NEXT, "pthread_exit"));
  next(value);
}
