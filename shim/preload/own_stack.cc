// A stack for first use: loading the core, reading settings and joining groups take more than a program's small stack
// can spare.
// Layer: preload. Threads: any; each call has its own. Called from: first use, also of a forked child.
// Design: design/first-use.md#a-stack-of-its-own
#include "own_stack.h"

#include <stddef.h>
#include <sys/mman.h>

// AddressSanitizer knows the stacks of its threads and reports errors on others, so under it we stay on the thread's.
extern "C" __attribute__((weak)) void __asan_init();

extern "C" __attribute__((visibility("hidden"))) void ration_call_on(void *end, void (*function)(void *),
                                                                     void *argument);

namespace ration::preload {
namespace {

constexpr size_t kGuardBytes = 65536;  // a multiple of any page size
constexpr size_t kBytes = 512 << 10;

}  // namespace

void on_own_stack(void (*function)(void *), void *argument) {
  void *region = &__asan_init != nullptr ? MAP_FAILED
                                         : mmap(nullptr, kGuardBytes + kBytes, PROT_NONE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  char *stack = static_cast<char *>(region) + kGuardBytes;
  if (region == MAP_FAILED || mprotect(stack, kBytes, PROT_READ | PROT_WRITE) != 0) {
    function(argument);  // no stack could be had: use the thread's
  } else {
    ration_call_on(stack + kBytes, function, argument);
  }
  if (region != MAP_FAILED) {
    munmap(region, kGuardBytes + kBytes);
  }
}

}  // namespace ration::preload
