// The identity of the address space, by which a forked child knows that it is one. Handlers of pthread_atfork(3) do not
// suffice: _Fork(3) and clone(2) do not run them. Layer: base. Threads: any. Owns: one page, which is never unmapped.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace ration {

namespace address_space {

// The page with the number of this address space. If there is no page, or it holds 0, the address space has no number
// yet, or its number is the process ID.
extern constinit std::atomic<std::atomic<std::uint64_t> *> page;
[[gnu::cold, gnu::noinline]] std::uint64_t find_number();

}  // namespace address_space

// A number that differs between a process and each of its forked descendants, by which they can find out what they did
// not inherit. Process IDs do not suffice: they may be equal across PID namespaces, and after they wrap around.
inline std::uint64_t this_address_space() {
  const std::atomic<std::uint64_t> *const number = address_space::page.load(std::memory_order_acquire);
  const std::uint64_t here = number != nullptr ? number->load(std::memory_order_relaxed) : 0;
  return here != 0 ? here : address_space::find_number();
}

// The process that made an object. Both the address space and the process ID are compared: a child that shares its
// parent's memory (vfork) has a different process ID, and a forked child in its own PID namespace may have the same
// process ID.
class Birthplace {
 public:
  bool is_here() const;

 private:
  std::uint64_t address_space_ = this_address_space();
  pid_t process_ = getpid();
};

}  // namespace ration
