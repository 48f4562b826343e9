// Decides which members of a process's groups are worth waiting for when the process lacks memory that they hold and do
// not use. They are the members that are not stopped and did not stay silent when they were last asked. A silent member
// has neither taken nor given anything since it was asked: it cannot answer, or has nothing to give back.
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

  // Those of `members` that are worth waiting for.
  Members willing(Members members);
  // The most bytes that these members can give in one of the groups.
  static std::uint64_t bytes_of(const Members &members);
  // Whether one of them is about to answer.
  static bool are_giving(const Members &members);
  // Whether one of them took or gave something between `then` and `now`.
  static bool have_acted(const Members &then, const Members &now);
  // Called after members were asked. Those that did nothing count as silent for one second, or until they act or use
  // less memory.
  void note_answers(const ledger::Account &account, ledger::Account::Of of, const Members &asked);

 private:
  struct Silent {
    ledger::Account::IdleMember member;
    std::uint64_t since_ns;
  };

  RankedMutex mutex_{Rank::kIdleNeighbours};
  std::vector<Silent> silent_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
