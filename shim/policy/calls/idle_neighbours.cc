#include "policy/calls/idle_neighbours.h"

#include <algorithm>

#include "base/clock.h"

namespace ration::policy {
namespace {

constexpr std::uint64_t kSilentNs = 1'000'000'000;

// Whether the member is as it was then, or uses more.
bool did_nothing(const ledger::Account::IdleMember &then, const ledger::Account::IdleMember &now) {
  return then.group == now.group && then.place == now.place && then.idle.slot == now.idle.slot &&
         then.idle.life == now.idle.life && then.idle.operation == now.idle.operation &&
         now.idle.bytes <= then.idle.bytes;
}

}  // namespace

IdleNeighbours::Members IdleNeighbours::willing(Members members) {
  {
    Guard guard(mutex_);
    const std::uint64_t now = now_ns();
    std::erase_if(silent_, [now](const Silent &one) { return now - one.since_ns > kSilentNs; });
    std::erase_if(members, [this](const ledger::Account::IdleMember &member) REQUIRES(mutex_) {
      return std::any_of(silent_.begin(), silent_.end(),
                         [&](const Silent &one) { return did_nothing(one.member, member); });
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

bool IdleNeighbours::are_giving(const Members &members) {
  return std::any_of(members.begin(), members.end(),
                     [](const ledger::Account::IdleMember &member) { return member.idle.is_giving(); });
}

bool IdleNeighbours::have_acted(const Members &then, const Members &now) {
  return std::any_of(then.begin(), then.end(), [&](const ledger::Account::IdleMember &one) {
    return std::none_of(now.begin(), now.end(),
                        [&](const ledger::Account::IdleMember &member) { return did_nothing(one, member); });
  });
}

void IdleNeighbours::note_answers(const ledger::Account &account, ledger::Account::Of of, const Members &asked) {
  const std::uint64_t now = now_ns();
  std::vector<Silent> found;
  for (const ledger::Account::IdleMember &member : account.idle_members(of)) {
    if (std::any_of(asked.begin(), asked.end(),
                    [&](const ledger::Account::IdleMember &then) { return did_nothing(then, member); })) {
      found.push_back({member, now});
    }
  }
  Guard guard(mutex_);
  silent_.insert(silent_.end(), found.begin(), found.end());
}

}  // namespace ration::policy
