// Identity of the address space, by which a child finds out that it is one. Handlers of pthread_atfork(3) do not say
// so: _Fork(3) and clone(2) run none. Layer: base. Threads: any. Owns: one page of the process, for good.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace ration {

namespace address_space {

// Where the number of this address space is; 0 there, or no page: it has none yet, or the process ID serves instead.
extern constinit std::atomic<std::atomic<std::uint64_t> *> page;
[[gnu::cold, gnu::noinline]] std::uint64_t find_number();

}  // namespace address_space

// Identifies this address space, so that a forked child can tell what it did not inherit from its parent. Differs
// between parent and child, however many forks lie between them. A process ID may be equal: across PID
// namespaces, and after it wraps around.
inline std::uint64_t this_address_space() {
  const std::atomic<std::uint64_t> *const number = address_space::page.load(std::memory_order_acquire);
  const std::uint64_t here = number != nullptr ? number->load(std::memory_order_relaxed) : 0;
  return here != 0 ? here : address_space::find_number();
}

// Where an object was made. A child that shares its parent's memory (vfork) has another process ID; in a namespace of
// its own it may have the same one.
class Birthplace {
 public:
  bool is_here() const;

 private:
  std::uint64_t address_space_ = this_address_space();
  pid_t process_ = getpid();
};

}  // namespace ration
