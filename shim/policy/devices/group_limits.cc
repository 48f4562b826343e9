// The groups of this process and its devices in each: the part of Devices that uses the ledger's memberships.
// Layer: policy/devices. Threads: under the lock no file is touched, only memory that is mapped already.
#include <algorithm>

#include "events/diagnostics.h"
#include "ledger/process_end.h"
#include "policy/devices/devices.h"

namespace ration::policy {

GroupAsked container_group(const std::string &limit) {
  return {ledger::GroupKind::kContainer, std::to_string(ledger::this_pid_namespace()) + "-" + limit};
}

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
      events::say(ledger::group_label(asked.kind, asked.name) +
                  " cannot be joined, so every allocation is refused: " + problem);
    }
    groups_.push_back(membership);
  }
  for (ledger::Membership *membership : groups_) {
    if (membership != nullptr && membership->has_limits()) {
      membership->reclaim_from_dead(0);  // so that no dead member's limit counts, on any device
    }
  }
  if (groups_.empty()) {
    // For `ration ps` only: a failure has no other effect.
    if (ledger::Membership *membership = ledger_.join(folder, ledger::GroupKind::kNone, {}, problem)) {
      groups_.push_back(membership);
    }
  }
  for (int device = 0; group_missing_ && device < ledger::kMaxDevices; ++device) {
    ledger_.account(device).close();
  }
}

// What these settings let the group take there. `enforceable` is false while that is a share of an unknown total.
std::optional<std::uint64_t> Devices::group_limit(std::size_t group, const events::DeviceFacts &facts,
                                                  bool &enforceable) const {
  const auto limit_on = [&](const events::DeviceFacts &device) { return limits_.group_limit_on(group, device); };
  std::optional<std::uint64_t> limit;
  if (facts.total != 0) {
    enforceable = true;
    return limit_on(facts);
  }
  enforceable = without_total(facts, limit_on, limit);
  return enforceable ? limit : std::nullopt;
}

void Devices::enter_groups(const events::DeviceFacts &facts, std::vector<std::string> &lines) {
  ledger::Account &account = ledger_.account(facts.ordinal);
  bool all_enforceable = !group_missing_;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    ledger::Membership *const group = groups_[i];
    if (group == nullptr) {
      continue;
    }
    const std::string spoken = ledger::group_label(group->kind(), group->name());
    const std::string on = "the limit of " + spoken + " on device " + std::to_string(facts.ordinal);
    const int place = group->device(facts.uuid, facts.ordinal);
    if (place < 0 || (!account.is_shared_with(group) && !account.share(group, place))) {
      if (group->kind() == ledger::GroupKind::kNone) {
        continue;
      }
      all_enforceable = false;
      lines.push_back(spoken + " has no place left for device " + std::to_string(facts.ordinal));
      continue;
    }
    if (group->kind() == ledger::GroupKind::kNone) {
      continue;
    }
    bool enforceable = true;
    const std::optional<std::uint64_t> limit = group_limit(i, facts, enforceable);
    if (!enforceable) {
      all_enforceable = false;
      lines.push_back(on + " is a share of its memory, and the driver does not report its size: every " +
                      "allocation is refused until it does; ask for a limit in bytes");
    } else if (limit.has_value()) {
      group->state_limit(place, limit.value());
      if (const std::uint64_t held = group->limit(place); held != limit.value()) {
        lines.push_back(on + ": " + std::to_string(limit.value()) +
                        " bytes were requested, but another member states " + std::to_string(held) +
                        ", and the smallest limit applies");
      }
    }
  }
  account.close(!all_enforceable);
}

}  // namespace ration::policy
