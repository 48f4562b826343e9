// Which members of a process's groups are worth waiting for when it lacks what they hold and do not use: those that are
// not stopped, and that did not stay silent when they were asked last.
// Layer: policy/calls. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "base/lock.h"
#include "ledger/ledger.h"

namespace ration::policy {

class IdleNeighbours {
 public:
  using Members = std::vector<ledger::Account::IdleMember>;

  // Of the account. Throws bad_alloc.
  Members willing(const ledger::Account &account);
  // What they can give in one of the groups, at the most.
  static std::uint64_t bytes_of(const Members &members);
  // They were asked: those that hold as much as before are silent, for a second.
  void note_answers(const Members &asked);

 private:
  struct Silent {
    const ledger::Membership *group;
    std::uint32_t slot;
    std::uint64_t life;
    std::uint64_t since_ns;
  };

  RankedMutex mutex_{Rank::kIdleNeighbours};
  std::vector<Silent> silent_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
