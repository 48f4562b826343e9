// Counts the program's changes to its resource limits. A log must not be written beyond RLIMIT_FSIZE, because the
// kernel would end the program (SIGXFSZ), and asking for the limit costs half as much as writing a record.
// Layer: preload. Threads: any. Called from: the program and its libraries, at any time. Sanitizers call it before
// instrumented functions have memory, so it calls no function that a program may have replaced.
// Design: design/fast-path.md#one-system-call-a-record
#include <errno.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "preload/preload.h"

namespace ration::preload {

uint32_t limit_changes;

namespace {

// The system call that glibc makes for all four functions. Returns 0, or the negative errno.
long prlimit64(long process, long resource, const void *limit, void *before) {
#if defined(__x86_64__)
  long result = SYS_prlimit64;
  register void *fourth asm("r10") = before;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(process), "S"(resource), "d"(limit), "r"(fourth)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_prlimit64;
  register long first asm("x0") = process;
  register long second asm("x1") = resource;
  register const void *third asm("x2") = limit;
  register void *fourth asm("x3") = before;
  asm volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third), "r"(fourth) : "memory");
  return first;
#endif
}

// Counts after the change, so a thread that sees the new count also sees the change.
int set_limit(pid_t process, int resource, const void *limit, void *before) {
  const long result = prlimit64(process, resource, limit, before);
  __atomic_fetch_add(&limit_changes, 1, __ATOMIC_RELEASE);
  if (result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return 0;
}

}  // namespace
}  // namespace ration::preload

// Not declared under the names of sys/resource.h, whose parameter has an enumeration type of glibc's.
extern "C" {

__attribute__((visibility("default"))) int ration_setrlimit(int resource, const void *limit) __asm__("setrlimit");
__attribute__((visibility("default"))) int ration_setrlimit64(int resource, const void *limit) __asm__("setrlimit64");
__attribute__((visibility("default"))) int ration_prlimit(pid_t process, int resource, const void *limit,
                                                          void *before) __asm__("prlimit");
__attribute__((visibility("default"))) int ration_prlimit64(pid_t process, int resource, const void *limit,
                                                            void *before) __asm__("prlimit64");

int ration_setrlimit(int resource, const void *limit) {
  return ration::preload::set_limit(0, resource, limit, nullptr);
}
int ration_setrlimit64(int resource, const void *limit) {
  return ration::preload::set_limit(0, resource, limit, nullptr);
}
int ration_prlimit(pid_t process, int resource, const void *limit, void *before) {
  return ration::preload::set_limit(process, resource, limit, before);
}
int ration_prlimit64(pid_t process, int resource, const void *limit, void *before) {
  return ration::preload::set_limit(process, resource, limit, before);
}
}
