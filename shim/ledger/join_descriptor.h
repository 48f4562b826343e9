// The descriptor by which a process joins a group: what must not get into a forked child, which would keep its parent's
// slot alive. All by pthread_atfork(3): a child that was made without it is not met.
// Layer: ledger. Threads: one joins at a time; others may fork meanwhile. Owns: the descriptor.
#pragma once

#include <cstdint>

#include "ledger/group_file.h"

namespace ration::ledger {

// Before the first of them. Twice is harmless.
void watch_forks();

// Whose turn it is: held around all that follows by those who may be several at once. A forked child's is its own.
class JoinTurn {
 public:
  JoinTurn();
  ~JoinTurn();
  JoinTurn(const JoinTurn &) = delete;
  JoinTurn &operator=(const JoinTurn &) = delete;
};

// While one of these is there no fork goes on: it waits for forks under way, and new ones wait for it. Nobody waits
// beyond `deadline_ns` or 50 ms, because a fork may itself wait for a lock that the joining thread's caller holds. It
// must be the whole time, from opening to closing: a fork copies descriptors and memory at different moments.
class BetweenForks {
 public:
  explicit BetweenForks(std::uint64_t deadline_ns);
  ~BetweenForks();
  BetweenForks(const BetweenForks &) = delete;
  BetweenForks &operator=(const BetweenForks &) = delete;
  // Whether a child may have got what is open, all the same.
  bool failed() const;

 private:
  std::uint64_t passed_;
  bool at_rest_;
};

// Where a child was forked all the same, it closes this.
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
