// The groups that this process is in, and its devices in each: the half of Devices that knows what is shared.
// Layer: policy. No file is touched under its lock, only memory that is mapped already.
#include <algorithm>

#include "events/diagnostics.h"
#include "policy/devices.h"

namespace ration::policy {

void Devices::join_groups() {
  const std::string folder = limits_.state_folder();
  if (folder.empty()) {
    return;
  }
  std::string problem;
  for (const GroupAsked &asked : limits_.groups()) {
    ledger::Membership *membership = ledger_.join(folder, asked.kind, asked.name, problem);
    if (membership == nullptr) {
      group_missing_ = true;
      events::say(ledger::spoken(asked.kind, asked.name) +
                  " cannot be joined, so every allocation is refused: " + problem);
    }
    groups_.push_back(membership);
  }
  if (groups_.empty()) {
    // Only to be seen by `ration ps`: where that fails nothing else does.
    if (ledger::Membership *membership = ledger_.join(folder, ledger::GroupKind::kNone, {}, problem)) {
      groups_.push_back(membership);
    }
  }
  for (int device = 0; group_missing_ && device < ledger::kMaxDevices; ++device) {
    ledger_.account(device).close();
  }
}

void Devices::enter_groups(const events::DeviceFacts &facts, std::vector<std::string> &lines) {
  ledger::Account &account = ledger_.account(facts.ordinal);
  bool enforceable = !group_missing_;
  const bool first = !account.is_shared();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    ledger::Membership *const group = groups_[i];
    if (group == nullptr) {
      continue;
    }
    const int place = group->device(facts.uuid, facts.ordinal);
    std::optional<std::uint64_t> limit = limits_.group_limit_on(i, facts);
    const std::string on =
        "the limit of " + ledger::spoken(group->kind(), group->name()) + " on device " + std::to_string(facts.ordinal);
    if (limit && facts.total == 0) {
      // A size that no total changes can be enforced without knowing the total; a share of it cannot, until it is
      // known.
      events::DeviceFacts guess = facts;
      guess.total = std::uint64_t{1} << 60;
      limit = limits_.group_limit_on(i, guess);
      guess.total <<= 1;
      if (limits_.group_limit_on(i, guess) != limit) {
        enforceable = false;
        limit = std::nullopt;
        lines.push_back(on + " is a share of its memory, and the driver does not tell how much it has: every " +
                        "allocation is refused until it does; ask for a limit in bytes");
      }
    }
    if (place < 0 || (first && !account.share(group, place))) {
      enforceable = enforceable && group->kind() == ledger::GroupKind::kNone;
      lines.push_back(ledger::spoken(group->kind(), group->name()) + " has no place left for device " +
                      std::to_string(facts.ordinal));
      continue;
    }
    if (limit) {
      group->state_limit(place, *limit);
      if (const std::uint64_t held = group->limit(place); held != *limit) {
        lines.push_back(on + ": " + std::to_string(*limit) + " bytes were asked for, but another member states " +
                        std::to_string(held) + ", and the smallest holds");
      }
    }
  }
  account.close(!enforceable);
}

}  // namespace ration::policy
