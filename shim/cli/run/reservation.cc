#include "cli/run/reservation.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/open_beyond_streams.h"
#include "base/saturating.h"
#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/run/device_neighbours.h"
#include "cli/run/driver_probe.h"
#include "cli/run/free_memory.h"
#include "cli/run/group_tree.h"
#include "cli/run/run_preparation.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "events/diagnostics.h"
#include "ledger/admission_lock.h"
#include "ledger/group_view.h"

namespace ration::cli {

namespace {

using Clock = std::chrono::steady_clock;
using ledger::GroupKind;

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::milliseconds kForOthersToGive{200};
constexpr int kInheritedDescriptor = 200;  // at least: programs count on low numbers

bool is_flag(const RunRequest &request, std::string_view key) {
  return std::any_of(request.flags.begin(), request.flags.end(),
                     [&](const auto &each) { return each.first->key == key; });
}

const config::Settings::Group *named_group(const config::Settings &settings) {
  const auto &groups = settings.groups;
  return groups.empty() || groups.back().kind != config::Settings::Group::Kind::kNamed ? nullptr : &groups.back();
}

std::uint64_t number_of_tree(const std::string &name) {
  return ledger::tree_number(GroupKind::kTree, name);
}

// The number of the tree that everything the run starts is in: that of --group-tree, or a new one.
std::string tree_of_run(const RunRequest &request, const config::Settings &settings, EnvironmentBlock &environment) {
  if (is_flag(request, "group_tree")) {
    const auto innermost = std::find_if(settings.groups.rbegin(), settings.groups.rend(), [](const auto &each) {
      return each.kind == config::Settings::Group::Kind::kTree;
    });
    if (innermost != settings.groups.rend()) {
      return innermost->name;
    }
  }
  std::string number = new_tree_number();
  if (number.empty()) {
    throw Refusal{kOurError, std::string("no random number for what the run starts: ") + std::strerror(errno)};
  }
  std::string trees = environment.value("RATION_GROUP_TREE");
  trees += (trees.empty() ? "" : ";") + number;
  environment.set("RATION_GROUP_TREE", trees);
  return number;
}

// What is promised to others on a device and not taken yet; `overhead` for each run that has not begun to take any.
std::uint64_t promised_to_others(const std::vector<ledger::Group> &groups, const std::string &uuid,
                                 std::uint64_t overhead) {
  const auto held_by_tree = [&](std::uint64_t tree) {
    std::uint64_t held = 0;
    for (const ledger::Group &group : groups) {
      if (group.kind == GroupKind::kTree && number_of_tree(group.name) == tree) {
        for (const ledger::GroupDevice &device : group.devices) {
          held += device.uuid == uuid ? device.claimed : 0;
        }
      }
    }
    return held;
  };
  std::uint64_t bytes = 0;
  for (const ledger::Group &group : groups) {
    if (group.kind != GroupKind::kNamed && group.kind != GroupKind::kQueue) {
      continue;
    }
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        if (use.uuid == uuid && use.guarantee != 0) {
          const std::uint64_t held = member.tree != 0 ? held_by_tree(member.tree) : use.covered;
          bytes += minus_or_zero(use.guarantee, held) + (member.tree != 0 && held == 0 ? overhead : 0);
        }
      }
    }
  }
  return bytes;
}

bool is_taken(const std::vector<ledger::Group> &groups, const std::string &uuid) {
  return std::any_of(groups.begin(), groups.end(), [&](const ledger::Group &group) {
    return std::any_of(group.devices.begin(), group.devices.end(),
                       [&](const ledger::GroupDevice &device) { return device.uuid == uuid && device.reserved != 0; });
  });
}

}  // namespace

Reservation::Reservation(Reservation &&other) noexcept {
  *this = std::move(other);
}

Reservation &Reservation::operator=(Reservation &&other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(place_, other.place_);
  std::swap(needs_, other.needs_);
  std::swap(inherited_, other.inherited_);
  return *this;
}

Reservation::~Reservation() {
  if (inherited_ >= 0) {
    close(inherited_);
  }
}

Reservation::Reservation(const RunRequest &request, const config::Settings &settings, EnvironmentBlock &environment) {
  const config::Settings::Group *const group = named_group(settings);
  if (settings.disabled || (!request.wait && !settings.guarantee)) {
    return;
  }
  if (settings.guarantee && group == nullptr) {
    throw Refusal{kOurError, "a guarantee (--guarantee) needs a group that leaves it to this run; write for example: " +
                                 std::string("--group lab --group-limit 50% --guarantee 2GiB")};
  }
  for (const config::DeviceIdentity &identity :
       ask_devices(environment).value_or(std::vector<config::DeviceIdentity>())) {
    Need need{identity.ordinal, identity.uuid, identity.total_bytes};
    const config::Settings::Limit limit = settings.limit_on(identity);
    const std::optional<std::uint64_t> of_group =
        group != nullptr ? settings.group_limit_on(*group, identity) : std::nullopt;
    need.limit = of_group.value_or(group != nullptr ? UINT64_MAX : need.total);
    if (settings.guarantee && settings.guarantee->bytes_of(identity.total_bytes) > limit.bytes) {
      throw Refusal{kOurError, "a guarantee of " +
                                   config::show_exact_bytes(settings.guarantee->bytes_of(identity.total_bytes)) +
                                   " is more than the command may take of device " + std::to_string(identity.ordinal) +
                                   ": " + config::show_exact_bytes(limit.bytes)};
    }
    need.bytes = settings.guarantee ? settings.guarantee_on(identity) : limit.asked ? limit.bytes : 0;
    events::explain(events::Level::debug, "device ", identity.ordinal, ": the command may take ", limit.bytes, " of ",
                    identity.total_bytes, " bytes, and needs ", need.bytes, " before it starts");
    if (need.bytes != 0 && !need.uuid.empty()) {
      needs_.push_back(need);
    }
  }
  if (needs_.empty() && !request.wait) {
    return;  // no driver here: each process claims its part when it finds one
  }
  if (needs_.empty()) {
    throw Refusal{kOurError,
                  "--wait: there is nothing to wait for: no device answers, or neither --limit nor --guarantee "
                  "says how much the command needs"};
  }

  folder_ = settings.state_folder();
  std::vector<std::uint64_t> within;
  for (auto each = settings.groups.rbegin(); each != settings.groups.rend(); ++each) {
    if (each->kind == config::Settings::Group::Kind::kTree) {
      within.push_back(number_of_tree(each->name));
    }
  }
  EnvironmentBlock with_tree = environment;
  const std::string tree = tree_of_run(request, settings, with_tree);
  const std::uint64_t number = number_of_tree(tree);
  std::erase(within, number);
  std::string problem;
  ledger::ProcessIdentity self = ledger::this_process();
  self.program = "ration run " + request.command.front();
  place_ = ledger::Membership::join(folder_, group != nullptr ? GroupKind::kNamed : GroupKind::kQueue,
                                    group != nullptr ? group->name : "", self, problem, {number, within});
  if (place_ == nullptr) {
    throw Refusal{kOurError, "nothing can be promised to the command: " + problem};
  }
  events::explain(events::Level::debug, ledger::group_label(place_->kind(), place_->name()), " is joined in ", folder_);
  if (place_->covering_tree() != 0 && !request.wait && !is_flag(request, "guarantee")) {
    place_.reset();  // the run in which this one is holds the guarantee, which the environment handed down
    return;
  }
  for (Need &need : needs_) {
    need.place = place_->device(need.uuid, need.ordinal);
    if (need.place < 0) {
      throw Refusal{kOurError, ledger::group_label(place_->kind(), place_->name()) + " has no place left for device " +
                                   std::to_string(need.ordinal)};
    }
    place_->reclaim_from_dead(need.place);  // which state nothing any more
    if (need.limit != UINT64_MAX) {
      place_->state_limit(need.place, need.limit);
    }
    need.limit = place_->limit(need.place);
    if (settings.guarantee && need.limit == UINT64_MAX) {
      throw Refusal{kOurError, ledger::group_label(place_->kind(), place_->name()) +
                                   " has no limit, so that nothing can be guaranteed in it; add --group-limit"};
    }
    const std::uint64_t most = std::min(need.limit, need.total);
    if (need.bytes > most) {
      throw Refusal{kOurError, config::show_exact_bytes(need.bytes) + " of device " + std::to_string(need.ordinal) +
                                   " can never fit: " + (most == need.total ? "it has " : "the group's limit is ") +
                                   config::show_exact_bytes(most)};
    }
  }
  if (request.wait) {
    wait(*request.wait, environment);
  } else {
    const Clock::time_point end = Clock::now() + kForOthersToGive;
    while (!claim()) {
      if (Clock::now() > end) {
        throw Refusal{kOurError, "its guarantee cannot be given: " + shortage() +
                                     "; ask for less, or start it when there is room (--wait)"};
      }
      for (const Need &need : needs_) {
        place_->want(need.place, need.bytes);
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  environment = std::move(with_tree);
  share_with_command();
}

// All of it or nothing.
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

// What the driver takes on its own account for one process, its contexts first of all: as it was for the last run that
// has ended; else as it is for those that run; else a guess, as for the headroom of a preallocation.
std::uint64_t Reservation::overhead_of(const Need &need, const std::vector<ledger::Group> &groups,
                                       std::uint64_t free_bytes) const {
  constexpr std::uint64_t kGuess = std::uint64_t{512} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;  // more is memory of others
  if (const std::uint64_t learnt = place_->learnt_overhead(need.place); learnt != 0) {
    return learnt;
  }
  std::map<std::uint64_t, std::uint64_t> held_by;  // each process, though it is in several groups
  for (const ledger::Group &group : groups) {
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        if (use.uuid == need.uuid && use.reserved != 0) {
          held_by[member.identity] = std::max(held_by[member.identity], use.reserved);
        }
      }
    }
  }
  std::uint64_t used = minus_or_zero(need.total, free_bytes);
  for (const auto &[process, held] : held_by) {
    used -= std::min(used, held);
  }
  const std::uint64_t each = held_by.empty() ? 0 : used / held_by.size();
  return each != 0 && each <= kMost ? each : kGuess;
}

std::string Reservation::wanted_of(const Need &need) {
  return config::show_exact_bytes(need.bytes) + " of device " + std::to_string(need.ordinal) + " are wanted";
}

// Where a device lacks what its holders do not use, they are asked for it, as the command itself would ask them.
Reservation::Room Reservation::room(FreeMemory &devices, IdleMemory *idle) {
  std::string problem;
  const std::vector<ledger::Group> groups = ledger::read_groups(folder_, problem);
  Room found = Room::enough;
  scarce_.clear();
  for (const Need &need : needs_) {
    const std::optional<std::uint64_t> free_bytes = devices.of(need.uuid);
    const std::uint64_t promised = promised_to_others(groups, need.uuid, 0);
    if (!free_bytes || (*free_bytes >= need.bytes && promised == 0 && !is_taken(groups, need.uuid))) {
      continue;  // nothing would become better
    }
    const std::uint64_t overhead = overhead_of(need, groups, *free_bytes);
    const std::uint64_t wanted = need.bytes + overhead + promised_to_others(groups, need.uuid, overhead);
    if (*free_bytes >= wanted) {
      continue;
    }
    const std::vector<DeviceHolder> holders = holders_of(groups, need.uuid);
    const bool asked = idle != nullptr && idle->wish(holders, need.uuid, need.ordinal, wanted - *free_bytes);
    found = asked && found != Room::none ? Room::was_asked_for : Room::none;
    if (scarce_.empty()) {
      scarce_ = wanted_of(need) + "; " + config::show_bytes(*free_bytes) + " of its " + config::show_bytes(need.total) +
                " are free";
      scarce_ += promised != 0 ? ", " + config::show_bytes(promised) + " are promised to others" : "";
      scarce_ += ", and a process takes about " + config::show_bytes(overhead) + " beside its own";
      scarce_ += shown_holders(holders, minus_or_zero(need.total, *free_bytes));
    }
  }
  return found;
}

// Which device leaves too little, and who holds what there.
std::string Reservation::shortage() const {
  const auto left_of = [this](const Need &need) {
    const std::uint64_t limit = place_->limit(need.place);
    return minus_or_zero(limit, place_->total(need.place));
  };
  const auto least = std::min_element(needs_.begin(), needs_.end(),
                                      [&](const Need &a, const Need &b) { return left_of(a) < left_of(b); });
  const std::uint64_t left = left_of(*least);
  if (!scarce_.empty() && (place_->kind() == GroupKind::kQueue || left >= least->bytes)) {
    return scarce_;
  }
  std::string text = wanted_of(*least);
  if (place_->kind() == GroupKind::kNamed) {
    text += ", and " + ledger::group_label(place_->kind(), place_->name());
    text += least->limit == UINT64_MAX ? " has no limit"
                                       : " has " + config::show_exact_bytes(left) + " of " +
                                             config::show_exact_bytes(place_->limit(least->place)) + " left";
  }
  std::vector<DeviceHolder> holders;
  for (const ledger::Holder &each : place_->holders(least->place, SIZE_MAX)) {
    holders.push_back({each.pid, each.program, each.reserved, 0, each.guarantee, each.is_of_tree, {}});
  }
  return text + shown_holders(holders, 0);
}

void Reservation::wait(const std::string &longest, const EnvironmentBlock &environment) {
  std::chrono::milliseconds most = std::chrono::hours(24 * 365);
  if (!longest.empty()) {
    if (const std::string wrong = config::read_milliseconds(longest, most); !wrong.empty()) {
      throw Refusal{kOurError, "--wait=" + config::shown(longest) + ": " + wrong};
    }
  }
  const Clock::time_point begun = Clock::now();
  FreeMemory devices(environment);
  ledger::ProcessIdentity self = ledger::this_process();
  self.program = "ration run";
  IdleMemory idle(folder_, std::move(self));
  ledger::Membership::Wants wants;
  for (const Need &need : needs_) {
    wants.emplace_back(need.place, need.bytes);
  }
  place_->queue_up(wants);
  for (bool said = false;;) {
    const std::size_t ahead = place_->ahead();
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
    }
    if (ahead != 0 && !said) {
      (void)room(devices, nullptr);  // for the words
    }
    const auto waited = Clock::now() - begun;
    if (waited >= most) {
      throw Refusal{kOurError, "nothing was started: there was no room within " + longest + ": " + shortage()};
    }
    if (!said && (found != Room::was_asked_for || waited > kForOthersToGive)) {
      said = true;
      log_line("run: waits for room: " + shortage() +
               (ahead != 0
                    ? "; " + std::to_string(ahead) + (ahead == 1 ? " other waits" : " others wait") + " ahead of it"
                    : ""));
    }
    if (ahead == 0) {
      for (const Need &need : needs_) {
        place_->want(need.place, need.bytes);
      }
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// The command may outlive this process. Its first process inherits a descriptor; those that load the library keep the
// place by themselves.
void Reservation::share_with_command() {
  const std::string path = folder_ + "/" + ledger::file_name(place_->kind(), place_->name());
  const int file = open_beyond_streams(AT_FDCWD, path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file >= 0 && place_->share_life_with(file)) {
    inherited_ = fcntl(file, F_DUPFD, kInheritedDescriptor);
  }
  if (file >= 0) {
    close(file);
  }
}

void Reservation::heed() {
  const std::uint64_t orders = place_->orders();
  if (orders == place_->heeded()) {
    return;
  }
  std::vector<std::uint64_t> before;
  bool granted = true;
  for (const Need &need : needs_) {
    const std::uint64_t ordered = place_->ordered_guarantee(need.place);
    const std::uint64_t bytes = ordered == ledger::shared::kUnordered ? need.bytes : ordered - 1;
    before.push_back(place_->own_guarantee(need.place));
    granted = granted && (ordered == 0 || ordered == ledger::shared::kRefused ||
                          place_->guarantee(need.place, bytes, true) == ledger::ReserveOutcome::granted);
  }
  for (std::size_t i = 0; !granted && i < needs_.size(); ++i) {  // all devices or none
    (void)place_->guarantee(needs_[i].place, before[i], true);
    place_->refuse_guarantee(needs_[i].place);
  }
  place_->take_note(orders);
}

void Reservation::learn(const std::vector<events::Summary> &summaries) {
  for (const Need &need : needs_) {
    std::uint64_t most = 0;
    for (const events::Summary &each : summaries) {
      const auto ordinal = static_cast<std::size_t>(need.ordinal);
      most = ordinal < each.devices.size() ? std::max(most, each.devices[ordinal].overhead_peak) : most;
    }
    if (place_ != nullptr && most != 0) {
      place_->learn_overhead(need.place, most);
    }
  }
}

}  // namespace ration::cli
