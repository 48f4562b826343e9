// Asks the kernel whether memory can be read. Reading a page past the end of a mapped file directly would raise SIGBUS.
// Layer: base. Threads: any. One system call, which changes nothing.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ration {

// True if the eight bytes at `address` can be read. rt_sigprocmask(2) copies the mask from there before it checks its
// first argument, which is invalid here, so the call fails with EFAULT if the bytes cannot be read, else with EINVAL
// (Linux, kernel/signal.c).
inline bool is_readable(const void *address) noexcept {
  constexpr int kInvalid = -1;
  const int before = errno;
  const bool readable =
      syscall(SYS_rt_sigprocmask, kInvalid, address, nullptr, sizeof(std::uint64_t)) == 0 || errno != EFAULT;
  errno = before;
  return readable;
}

}  // namespace ration
