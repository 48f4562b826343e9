// Keeps a process's join descriptor out of forked children, which would keep their parent's slot alive; and its probes,
// which would only pile up.
// Works through pthread_atfork(3): a child that is made without it is not covered.
// Layer: ledger. Threads: one joins at a time; others may fork meanwhile. Owns: the descriptor.
#pragma once

#include "base/reentrant_gate.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// Lets one thread at a time through all that follows. A forked child starts with an open gate.
class JoinGate : public ReentrantGate {
 public:
  JoinGate();
};

// A child that was forked nevertheless closes this descriptor.
class JoinDescriptor {
 public:
  JoinDescriptor() = default;
  ~JoinDescriptor();
  JoinDescriptor(const JoinDescriptor &) = delete;
  JoinDescriptor &operator=(const JoinDescriptor &) = delete;
  void take(Descriptor opened);
  void close();
  explicit operator bool() const { return static_cast<bool>(opened_); }
  int number() const { return opened_.number(); }

 private:
  Descriptor opened_;
};

}  // namespace ration::ledger
