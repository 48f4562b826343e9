// Keeps a process's join descriptor out of forked children, which would keep their parent's slot alive.
// Works through pthread_atfork(3): a child that is made without it is not covered.
// Layer: ledger. Threads: one joins at a time; others may fork meanwhile. Owns: the descriptor.
#pragma once

#include <cstdint>

#include "base/reentrant_gate.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// Call it before the first of the classes below. Calling it twice is harmless.
void watch_forks();

// Lets one thread at a time through all that follows. A forked child starts with an open gate.
class JoinGate : public ReentrantGate {
 public:
  JoinGate();
};

// Keeps forks out while it lives: it waits for forks in progress, and new forks wait for it. Neither side waits beyond
// `deadline_ns` or 50 ms, because a fork may itself wait for a lock of the joining thread's caller. It must span
// opening to closing: a fork copies descriptors and memory at different times.
class ForkExclusion {
 public:
  explicit ForkExclusion(std::uint64_t deadline_ns);
  ~ForkExclusion();
  ForkExclusion(const ForkExclusion &) = delete;
  ForkExclusion &operator=(const ForkExclusion &) = delete;
  // Whether a forked child may have inherited what is open, nevertheless.
  bool failed() const;

 private:
  std::uint64_t unwaited_before_;
  bool no_forks_;
};

// A child that was forked nevertheless closes this descriptor.
class JoinDescriptor {
 public:
  JoinDescriptor() = default;
  ~JoinDescriptor();
  JoinDescriptor(const JoinDescriptor &) = delete;
  JoinDescriptor &operator=(const JoinDescriptor &) = delete;
  void take(Descriptor opened);
  explicit operator bool() const { return static_cast<bool>(opened_); }
  int number() const { return opened_.number(); }

 private:
  Descriptor opened_;
};

}  // namespace ration::ledger
