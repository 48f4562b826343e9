// Closes a process's join descriptor in forked children, where it would keep the parent's slot alive. Also closes the
// process's probes in these children, where they would only pile up. Uses pthread_atfork(3), so it does not work in a
// child that is forked without fork handlers.
// Layer: ledger. Threads: one joins at a time; others may fork meanwhile. Owns: the descriptor.
#pragma once

#include "base/reentrant_gate.h"
#include "ledger/group_file.h"

namespace ration::ledger {

// Lets one thread at a time join. A forked child starts with an open gate.
class JoinGate : public ReentrantGate {
 public:
  JoinGate();
};

// The descriptor that is open while a process joins. A child that is forked meanwhile closes it.
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
