// The groups of this process, and its devices in each group. This is the part of Devices that uses the ledger's
// memberships.
// Layer: policy/devices. Threads: under the lock no file is touched, only memory that is mapped already.
#include <algorithm>

#include "base/clock.h"
#include "base/wait.h"
#include "events/diagnostics.h"
#include "events/event.h"
#include "policy/devices/devices.h"

namespace ration::policy {

void Devices::join_groups() {
  const std::string folder = limits_.state_folder();
  if (folder.empty()) {
    return;
  }
  std::string problem;
  ledger::Trees trees;
  for (const GroupAsked &asked : limits_.groups()) {
    if (const std::uint64_t tree = ledger::tree_number(asked.kind, asked.name); tree != 0) {
      trees.within.push_back(tree);
    }
  }
  for (const GroupAsked &asked : limits_.groups()) {
    const bool may_guarantee = asked.kind == ledger::GroupKind::kNamed;
    ledger::Membership *membership =
        ledger_.join(folder, asked.kind, asked.name, problem, may_guarantee ? trees : ledger::Trees{});
    if (membership == nullptr) {
      group_missing_ = true;
      events::say(ledger::group_label(asked.kind, asked.name) +
                  " cannot be joined, so every allocation is refused: " + problem);
    }
    if (membership != nullptr && events::shows(events::Level::info)) {
      events::explain(events::Level::info, ledger::group_label(asked.kind, asked.name), " is joined in ", folder);
    }
    groups_.push_back(membership);
  }
  for (ledger::Membership *membership : groups_) {
    if (membership != nullptr) {
      membership->reclaim_from_dead(0);  // so that the limit of a dead member does not count on any device
    }
  }
  // Joins the file of all processes in the folder, so that others can be asked for idle memory and `ration ps` shows
  // this one. A failure has no other effect.
  if (ledger::Membership *membership = ledger_.join(folder, ledger::GroupKind::kNone, {}, problem)) {
    membership->reclaim_from_dead(0);  // so that dead members do not count as neighbours
    groups_.push_back(membership);
  }
  for (int device = 0; group_missing_ && device < ledger::kMaxDevices; ++device) {
    ledger_.account(device).close();
  }
}

void Devices::enter_groups(const events::DeviceFacts &facts, std::vector<std::string> &lines, std::vector<Owed> &owed) {
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
    group->show_total(place, facts.total);
    if (group->kind() == ledger::GroupKind::kNone) {
      continue;
    }
    const auto limit_on = [&](const events::DeviceFacts &device) { return limits_.group_limit_on(i, device); };
    std::optional<std::uint64_t> limit = facts.total != 0 ? limit_on(facts) : std::nullopt;
    const bool enforceable = facts.total != 0 || without_total(facts, limit_on, limit);
    if (!enforceable) {
      all_enforceable = false;
      lines.push_back(on + " is a percentage of its memory, and the driver does not report its size: every " +
                      "allocation is refused until it does; ask for a limit in bytes");
    } else if (limit.has_value()) {
      const std::uint64_t before = group->limit(place);
      group->state_limit(place, limit.value());
      const std::uint64_t held = group->limit(place);
      const auto uses_smallest = [&](const std::string &uses, const std::string &others) {
        return spoken + uses + " the smallest limit given, " + limits_.spoken(held) + " on device " +
               std::to_string(facts.ordinal) + " (" + others + ")";
      };
      const std::string asked = "asked here: " + limits_.spoken(limit.value());
      if (held == limit.value() && before > held && before != ledger::kNoLimit) {
        lines.push_back(uses_smallest(" now uses", "another member asked for " + limits_.spoken(before)));
      } else if (held != limit.value() && group->has_ordered_limit(place)) {
        lines.push_back(on + " is " + limits_.spoken(held) + ", as changed by `ration set` (" + asked + ")");
      } else if (held != limit.value()) {
        lines.push_back(uses_smallest(" uses", asked));
      }
    }
    const std::uint64_t bytes = group->kind() == ledger::GroupKind::kNamed ? limits_.guarantee_on(facts) : 0;
    if (bytes != 0 && enforceable && group->covering_tree() == 0 &&
        group->guarantee(place, bytes, false) != ledger::ReserveOutcome::granted) {
      owed.push_back({facts.ordinal, group, place, bytes});
    }
  }
  const bool owes = !owed.empty() && owed.back().ordinal == facts.ordinal;
  if (owes) {
    owed.back().refuses_for_ever = !all_enforceable;
  }
  account.close(!all_enforceable || owes);
}

bool Devices::heed_now() noexcept {
  std::vector<Device> *const devices = devices_.load(std::memory_order_acquire);
  if (devices == nullptr || heeding_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  try {
    heed_all(*devices);
  } catch (...) {  // no host memory: tried again at the next call
  }
  heeding_.store(false, std::memory_order_release);
  return true;
}

void Devices::heed_all(std::vector<Device> &devices) {
  std::vector<std::uint64_t> seen;
  for (const ledger::Membership *group : groups_) {
    seen.push_back(group != nullptr ? group->orders() : 0);
  }
  std::vector<std::uint64_t> before;  // the guarantee on each device
  bool granted = true;
  for (Device &device : devices) {
    ledger::Account &account = ledger_.account(device.ordinal);
    const events::DeviceFacts facts = device.facts();
    if (const std::uint64_t ordered = account.ordered_limit(); ordered != 0) {
      const std::uint64_t most = facts.total == 0 ? UINT64_MAX : facts.total;
      const DeviceLimit limit = ordered == ledger::shared::kUnordered ? limits_.limit_on(facts)
                                                                      : DeviceLimit{true, std::min(ordered - 1, most)};
      device.limit.store(limit.asked ? limit.bytes : UINT64_MAX, std::memory_order_relaxed);
      device.limit_asked.store(limit.asked, std::memory_order_relaxed);
      account.set_limit(limit.asked ? limit.bytes : UINT64_MAX);
      if (events::Journal *const journal = journal_.load(std::memory_order_acquire)) {
        journal->note_limit(device.ordinal, limit.asked, limit.bytes);
      }
    }
    before.push_back(account.own_guarantee());
    granted = account.heed_guarantee(limits_.guarantee_on(facts)) && granted;
  }
  for (std::size_t i = 0; !granted && i < devices.size(); ++i) {  // a guarantee takes effect on all devices or none
    ledger_.account(devices[i].ordinal).refuse_guarantee(before[i]);
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i] != nullptr) {
      groups_[i]->take_note(seen[i]);
    }
  }
}

namespace {

std::string holders_of(const ledger::Membership &group, int place, const LimitSource &limits) {
  constexpr std::size_t kMostHolders = 8;
  std::string text;
  std::vector<ledger::Holder> holders = group.holders(place);
  const std::size_t more = minus_or_zero(holders.size(), kMostHolders);
  holders.resize(holders.size() - more);
  for (const ledger::Holder &holder : holders) {
    text += (text.empty() ? "" : ", ") + holder.program + " (pid " + std::to_string(holder.pid) + ") " +
            events::held_words(holder.reserved, holder.guarantee, "holds", "keeps",
                               [&limits](std::uint64_t bytes) { return limits.spoken(bytes); });
  }
  text += more != 0 ? ", and " + std::to_string(more) + " more" : "";
  return text.empty() ? "nobody holds any" : text;
}

}  // namespace

void Devices::claim(const std::vector<Owed> &owed) {
  constexpr std::uint64_t kAskNs = 200'000'000;
  for (const Owed &each : owed) {
    const std::uint64_t begun = now_ns();
    bool granted = false;
    for (Waiter waiter;;) {
      granted = each.group->guarantee(each.place, each.bytes, true) == ledger::ReserveOutcome::granted;
      if (granted || now_ns() - begun > kAskNs || each.group->surplus(each.place) == 0) {
        break;
      }
      each.group->want(each.place, each.bytes);
      waiter.pause();
    }
    if (granted) {
      events::explain(events::Level::info, "device ", each.ordinal, ": other members have given back what ", each.bytes,
                      " guaranteed bytes lacked");
      ledger_.account(each.ordinal).close(each.refuses_for_ever);
      continue;
    }
    events::say(ledger::group_label(each.group->kind(), each.group->name()) + " cannot guarantee " +
                limits_.spoken(each.bytes) + " on device " + std::to_string(each.ordinal) +
                ", so every allocation there is refused: of its limit of " +
                limits_.spoken(each.group->limit(each.place)) + ", " +
                limits_.spoken(each.group->available(each.place)) + " is left; " +
                holders_of(*each.group, each.place, limits_));
  }
}

}  // namespace ration::policy
