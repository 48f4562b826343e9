// How a run waits for the memory that it was promised: how much room there is, who takes it, and the messages about it.
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/saturating.h"
#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/run/reservation.h"
#include "cli/run/run_preparation.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "ledger/admission_lock.h"

namespace ration::cli {

namespace {

using Clock = std::chrono::steady_clock;
using ledger::GroupKind;

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::milliseconds kForOthersToGive{200};
// While other runs wait ahead, only every 20th look asks who holds what, as only the message needs that.
constexpr unsigned kLooksWhileOthersWait = 20;

}  // namespace

// Claims the memory on all devices, or on none.
bool Reservation::claim() {
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    if (place_->guarantee(needs_[i].place, needs_[i].bytes, true) != ledger::ReserveOutcome::granted) {
      while (i-- > 0) {
        (void)place_->guarantee(needs_[i].place, 0, false);
      }
      return false;
    }
  }
  return true;
}

// What the driver takes for itself for one process, mostly for contexts: the value of the last run that has ended; or
// else the average over those that run; or else a guess, the same as for the headroom of a preallocation. `not_ours`:
// the bytes of the device that are free or held by programs without Ration.
std::uint64_t Reservation::overhead_of(const Need &need, const std::vector<ledger::Group> &groups,
                                       std::uint64_t not_ours) const {
  constexpr std::uint64_t kGuess = std::uint64_t{512} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;  // anything more is other programs' memory
  if (const std::uint64_t learnt = place_->learnt_overhead(need.place); learnt != 0) {
    return learnt;
  }
  std::map<std::uint64_t, std::uint64_t> held_by;  // by process, each of which may be in several groups
  for (const ledger::Group &group : groups) {
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        if (use.uuid == need.uuid && use.reserved != 0) {
          held_by[member.identity] = std::max(held_by[member.identity], use.reserved);
        }
      }
    }
  }
  std::uint64_t used = minus_or_zero(need.total, not_ours);
  for (const auto &[process, held] : held_by) {
    used -= std::min(used, held);
  }
  const std::uint64_t each = held_by.empty() ? 0 : used / held_by.size();
  return each != 0 && each <= kMost ? each : kGuess;
}

std::string Reservation::amount_of(const Need &need) {
  return config::show_exact_bytes(need.bytes) + " on device " + std::to_string(need.ordinal);
}

// If a device lacks memory that its holders do not use, they are asked for it, as the command itself would ask them.
Reservation::Room Reservation::room(NvmlProcess &devices, IdleMemory *idle) {
  std::string problem;
  const std::vector<ledger::Group> groups = ledger::read_groups(folder_, problem);
  Room found = Room::enough;
  scarce_ = {};
  ahead_ = idle != nullptr ? std::vector<DeviceHolder>() : ahead_of(groups);
  for (const Need &need : needs_) {
    const std::optional<DeviceFigures> seen = devices.of(need.uuid);
    const bool is_known = seen && seen->memory;
    const std::uint64_t free_bytes = is_known ? seen->memory->free : 0;
    const std::uint64_t promised = promised_to_others(groups, need.uuid, 0);
    if (!is_known || (free_bytes >= need.bytes && promised == 0 && !is_taken(groups, need.uuid))) {
      continue;  // there is enough room, or none can be measured
    }
    const std::vector<DeviceHolder> outsiders = outsiders_among(seen->holders, groups);
    std::uint64_t others = 0;
    for (const DeviceHolder &each : outsiders) {
      others += each.reserved;
    }
    const std::uint64_t overhead = overhead_of(need, groups, free_bytes + others);
    const std::uint64_t wanted = need.bytes + overhead + promised_to_others(groups, need.uuid, overhead);
    if (free_bytes >= wanted) {
      continue;
    }
    std::vector<DeviceHolder> holders = holders_of(groups, need.uuid);
    const bool asked = idle != nullptr && idle->wish(holders, need.uuid, need.ordinal, wanted - free_bytes);
    found = asked && found != Room::none ? Room::was_asked_for : Room::none;
    if (scarce_.amount.empty()) {
      holders.insert(holders.end(), outsiders.begin(), outsiders.end());
      std::stable_sort(holders.begin(), holders.end(),
                       [](const DeviceHolder &a, const DeviceHolder &b) { return a.bytes() > b.bytes(); });
      scarce_.amount = amount_of(need);
      scarce_.why = config::show_bytes(free_bytes) + " of its " + config::show_bytes(need.total) + " are free";
      scarce_.why += promised != 0 ? ", " + config::show_bytes(promised) + " are promised to others" : "";
      scarce_.why += ", and a process takes about " + config::show_bytes(overhead) + " besides";
      scarce_.take(holders, minus_or_zero(need.total, free_bytes));
    }
  }
  return found;
}

void Reservation::Shortage::take(const std::vector<DeviceHolder> &holders, std::uint64_t used) {
  why += shown_holders(holders, used);
  for (const DeviceHolder &each : holders) {
    by.push_back(each.pid);
  }
}

// The earlier runs that wait for one of the same devices.
std::vector<DeviceHolder> Reservation::ahead_of(const std::vector<ledger::Group> &groups) const {
  std::vector<DeviceHolder> ahead;
  for (const ledger::Group &group : groups) {
    if (group.kind != place_->kind() || group.name != place_->name()) {
      continue;
    }
    const auto own = std::find_if(group.members.begin(), group.members.end(),
                                  [&](const ledger::Member &each) { return each.identity == identity_; });
    const auto is_wanted = [&](const ledger::DeviceUse &use) {
      return use.waiting != 0 &&
             std::any_of(needs_.begin(), needs_.end(), [&](const Need &need) { return need.uuid == use.uuid; });
    };
    for (const ledger::Member &member : group.members) {
      const auto use = std::find_if(member.devices.begin(), member.devices.end(), is_wanted);
      if (own != group.members.end() && member.ticket != 0 && member.ticket < own->ticket &&
          use != member.devices.end()) {
        ahead.push_back({member.pid, member.program, use->waiting});
      }
    }
  }
  return ahead;
}

// Which device leaves too little, and who holds what on it.
Reservation::Shortage Reservation::shortage() const {
  const auto left_of = [this](const Need &need) {
    const std::uint64_t limit = place_->limit(need.place);
    return minus_or_zero(limit, place_->total(need.place));
  };
  const auto least = std::min_element(needs_.begin(), needs_.end(),
                                      [&](const Need &a, const Need &b) { return left_of(a) < left_of(b); });
  const std::uint64_t left = left_of(*least);
  Shortage found = scarce_;
  if (found.amount.empty() || (place_->kind() == GroupKind::kNamed && left < least->bytes)) {
    found = {amount_of(*least), "", {}};
    if (place_->kind() == GroupKind::kNamed) {
      found.why = ledger::group_label(place_->kind(), place_->name());
      found.why += least->limit == UINT64_MAX ? " has no limit"
                                              : " has " + config::show_exact_bytes(left) + " of " +
                                                    config::show_exact_bytes(place_->limit(least->place)) + " left";
    }
    std::vector<DeviceHolder> holders;
    for (const ledger::Holder &each : place_->holders(least->place)) {
      holders.push_back({each.pid, each.program, each.reserved, 0, each.guarantee, each.is_of_tree});
    }
    found.take(holders, 0);
  }
  found.by.push_back(least->ordinal);
  found.by.push_back(static_cast<std::int64_t>(place_->limit(least->place)));  // `ration set` may change it
  for (const DeviceHolder &each : ahead_) {
    const bool is_first = &each == &ahead_.front();
    found.why += is_first ? "; " + std::to_string(ahead_.size()) +
                                (ahead_.size() == 1 ? " other waits ahead of it: " : " others wait ahead of it: ")
                          : ", ";
    found.why += named(each) + " for " + config::show_bytes(each.reserved);
    found.by.push_back(-each.pid);
  }
  found.why.erase(0, found.why.starts_with("; ") ? 2 : 0);
  if (found.why.empty()) {
    found.why = "another run is about to start there";
  }
  std::sort(found.by.begin(), found.by.end());  // the same ones in another order are not new
  return found;
}

void Reservation::wait(const std::string &longest, const EnvironmentBlock &environment) {
  std::chrono::milliseconds most = std::chrono::hours(24 * 365);
  if (!longest.empty()) {
    if (const std::string wrong = config::read_milliseconds(longest, most); !wrong.empty()) {
      throw Refusal{kOurError, "--wait=" + config::shown(longest) + ": " + wrong};
    }
  }
  const Clock::time_point begun = Clock::now();
  NvmlProcess devices(environment);
  ledger::ProcessIdentity self = ledger::this_process();
  self.program = "ration run";
  IdleMemory idle(folder_, std::move(self));
  ledger::Membership::Wants wants;
  for (const Need &need : needs_) {
    wants.emplace_back(need.place, need.bytes);
  }
  place_->queue_up(wants);
  std::optional<std::vector<std::int64_t>> said;  // who held it up according to the last line
  std::size_t ahead_before = 0;
  for (unsigned looks = 0;; ++looks) {
    const std::size_t ahead = place_->ahead();
    const bool is_over = Clock::now() - begun >= most;
    Room found = Room::none;
    if (ahead == 0) {
      const ledger::AdmissionLock lock(folder_);
      found = lock ? room(devices, &idle) : Room::none;
      if (found == Room::enough && claim()) {
        place_->leave_queue();
        if (said) {
          const auto waited = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun);
          log_line("run: starts, having waited " + std::to_string(waited.count()) + " s");
        }
        return;
      }
    } else if (ahead != ahead_before || looks % kLooksWhileOthersWait == 0 || is_over) {
      (void)room(devices, nullptr);  // only for the message
    }
    ahead_before = ahead;
    const Shortage now = shortage();
    if (is_over) {
      const std::string unit = longest.back() >= '0' && longest.back() <= '9' ? " s" : "";
      throw Refusal{kOurError, "nothing was started: there was no room within " + longest + unit + ": needs " +
                                   now.amount + "; " + now.why};
    }
    if (said != now.by && (found != Room::was_asked_for || Clock::now() - begun > kForOthersToGive)) {
      log_line(std::string("run: ") + (said ? "still " : "") + "waits for room: needs " + now.amount + "; " + now.why);
      said = now.by;
    }
    if (ahead == 0) {
      for (const Need &need : needs_) {
        place_->want(need.place, need.bytes);
      }
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Reservation::claim_now() {
  const Clock::time_point end = Clock::now() + kForOthersToGive;
  while (!claim()) {
    if (Clock::now() > end) {
      const Shortage now = shortage();
      throw Refusal{kOurError, "cannot guarantee " + now.amount + ": " + now.why +
                                   "; ask for less, or start it when there is room (--wait)"};
    }
    for (const Need &need : needs_) {
      place_->want(need.place, need.bytes);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace ration::cli
