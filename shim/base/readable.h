// Whether memory can be read, asked of the kernel: a page behind the end of a mapped file raises SIGBUS otherwise.
// Layer: base. Threads: any. One system call, which changes nothing.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ration {

// Of the eight bytes at `address`. rt_sigprocmask(2) copies the mask before it looks at what to do with it, which is
// invalid here (Linux, kernel/signal.c).
inline bool is_readable(const void *address) noexcept {
  constexpr int kInvalid = -1;
  const int before = errno;
  const bool readable =
      syscall(SYS_rt_sigprocmask, kInvalid, address, nullptr, sizeof(std::uint64_t)) == 0 || errno != EFAULT;
  errno = before;
  return readable;
}

}  // namespace ration
