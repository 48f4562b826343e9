// The descriptor by which a process joins a group: what must not get into a forked child, which would keep its parent's
// slot alive. All by pthread_atfork(3): a child that was made without it is not met.
// Layer: ledger. Threads: one joins at a time; others may fork meanwhile. Owns: the descriptor.
#pragma once

#include <cstdint>

#include "ledger/group_file.h"

namespace ration::ledger {

// Before the first of them. Twice is harmless.
void watch_forks();

// How many forks had begun: of this process, at a moment when none was under way, or at the deadline. Whoever opens and
// maps the file calls the one before and compares it with the other after it, and drops what he has if they differ.
std::uint64_t forks_at_rest(std::uint64_t deadline_ns);
std::uint64_t forks_begun();

// Closed in forked children from now on.
class JoinDescriptor {
 public:
  explicit JoinDescriptor(Descriptor opened);
  ~JoinDescriptor();
  JoinDescriptor(const JoinDescriptor &) = delete;
  JoinDescriptor &operator=(const JoinDescriptor &) = delete;
  explicit operator bool() const { return static_cast<bool>(opened_); }
  int number() const { return opened_.number(); }

 private:
  Descriptor opened_;
};

}  // namespace ration::ledger
