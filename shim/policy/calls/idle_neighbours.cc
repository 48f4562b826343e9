#include "policy/calls/idle_neighbours.h"

#include <algorithm>

#include "base/clock.h"

namespace ration::policy {
namespace {

constexpr std::uint64_t kSilentNs = 1'000'000'000;

}  // namespace

IdleNeighbours::Members IdleNeighbours::willing(const ledger::Account &account) {
  Members members = account.idle_members();
  {
    Guard guard(mutex_);
    const std::uint64_t now = now_ns();
    std::erase_if(silent_, [now](const Silent &one) { return now - one.since_ns > kSilentNs; });
    std::erase_if(members, [this](const ledger::Account::IdleMember &member) REQUIRES(mutex_) {
      return std::any_of(silent_.begin(), silent_.end(), [&](const Silent &one) {
        return one.group == member.group && one.slot == member.idle.slot && one.life == member.idle.life;
      });
    });
  }
  std::erase_if(members, [](const ledger::Account::IdleMember &member) { return member.idle.is_stopped(); });
  return members;
}

std::uint64_t IdleNeighbours::bytes_of(const Members &members) {
  std::uint64_t most = 0;
  std::uint64_t bytes = 0;
  const ledger::Membership *group = nullptr;
  for (const ledger::Account::IdleMember &member : members) {  // group by group
    bytes = member.group == group ? bytes + member.idle.bytes : member.idle.bytes;
    group = member.group;
    most = std::max(most, bytes);
  }
  return most;
}

void IdleNeighbours::note_answers(const Members &asked) {
  std::vector<Silent> found;
  const std::uint64_t now = now_ns();
  for (const ledger::Account::IdleMember &member : asked) {
    for (const ledger::Membership::Idle &idle : member.group->idle(member.place)) {
      if (idle.slot == member.idle.slot && idle.life == member.idle.life && idle.bytes >= member.idle.bytes) {
        found.push_back({member.group, idle.slot, idle.life, now});
      }
    }
  }
  Guard guard(mutex_);
  silent_.insert(silent_.end(), found.begin(), found.end());
}

}  // namespace ration::policy
