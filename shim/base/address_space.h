// Identity of the address space, by which a child finds out that it is one. Handlers of pthread_atfork(3) do not say
// so: _Fork(3) and clone(2) run none. Layer: base. Threads: any. Owns: one page of the process, for good.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace ration {

// Identifies this address space, so that a forked child can tell what it did not inherit from its parent. Differs
// between parent and child, however many forks lie between them. A process ID may be equal: across PID
// namespaces, and after it wraps around.
std::uint64_t this_address_space();

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
