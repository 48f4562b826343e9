#include "cli/run/reservation.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/open_beyond_streams.h"
#include "cli/base/exit_status.h"
#include "cli/run/driver_probe.h"
#include "cli/run/group_tree.h"
#include "cli/run/run_preparation.h"
#include "config/values/size.h"
#include "events/diagnostics.h"
#include "ledger/group_view.h"

namespace ration::cli {

namespace {

using ledger::GroupKind;

constexpr int kInheritedDescriptor = 200;  // the least number: programs rely on low ones

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

// The number of the tree for everything that the run starts: --group-tree's, or a new one.
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

}  // namespace

Reservation::Reservation(Reservation &&other) noexcept {
  *this = std::move(other);
}

Reservation &Reservation::operator=(Reservation &&other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(tree_, other.tree_);
  std::swap(place_, other.place_);
  std::swap(identity_, other.identity_);
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
  if (settings.disabled || (!request.wait && settings.guarantee.empty())) {
    return;
  }
  const bool is_guaranteed = !settings.guarantee.empty();
  if (is_guaranteed && group == nullptr) {
    throw Refusal{kOurError,
                  "a guarantee (--guarantee) needs a group that leaves it to this run; write, for example: " +
                      std::string("--group lab --group-limit 50% --guarantee 2GiB")};
  }
  const auto devices = ask_devices(environment).value_or(std::vector<config::DeviceIdentity>());
  for (const config::DeviceIdentity &identity : devices) {
    Need need{identity.ordinal, identity.uuid, identity.total_bytes};
    const config::Settings::Limit limit = settings.limit_on(identity);
    const std::optional<std::uint64_t> of_group =
        group != nullptr ? settings.group_limit_on(*group, identity) : std::nullopt;
    need.limit = of_group.value_or(group != nullptr ? UINT64_MAX : need.total);
    const std::uint64_t guarantee = config::smallest_limit(settings.guarantee, identity).value_or(0);
    if (guarantee > limit.bytes) {
      throw Refusal{kOurError, "a guarantee of " + config::show_exact_bytes(guarantee) +
                                   " is more than the command may take of device " + std::to_string(identity.ordinal) +
                                   ": " + config::show_exact_bytes(limit.bytes)};
    }
    need.bytes = is_guaranteed ? guarantee : limit.asked ? limit.bytes : 0;
    events::explain(events::Level::debug, "device ", identity.ordinal, ": the command may take ", limit.bytes, " of ",
                    identity.total_bytes, " bytes, and needs ", need.bytes, " before it starts");
    if (need.bytes != 0 && !need.uuid.empty()) {
      needs_.push_back(need);
    }
  }
  if (needs_.empty() && !request.wait) {
    return;  // no driver answers here: each process claims its part when it finds one
  }
  if (needs_.empty()) {
    throw Refusal{kOurError, std::string("--wait: there is nothing to wait for: ") +
                                 (devices.empty() ? "no device answers; see ration doctor"
                                                  : "neither --limit nor --guarantee says how much the command needs")};
  }

  folder_ = settings.state_folder();
  std::vector<std::uint64_t> within;
  for (auto each = settings.groups.rbegin(); each != settings.groups.rend(); ++each) {
    if (each->kind == config::Settings::Group::Kind::kTree) {
      within.push_back(number_of_tree(each->name));
    }
  }
  EnvironmentBlock with_tree = environment;
  tree_ = tree_of_run(request, settings, with_tree);
  const std::uint64_t number = number_of_tree(tree_);
  std::erase(within, number);
  std::string problem;
  ledger::ProcessIdentity self = ledger::this_process();
  self.program = "ration run " + request.command.front();
  identity_ = self.identity;
  place_ = ledger::Membership::join(folder_, group != nullptr ? GroupKind::kNamed : GroupKind::kQueue,
                                    group != nullptr ? group->name : "", self, problem, {number, within});
  if (place_ == nullptr) {
    throw Refusal{kOurError, "nothing can be promised to the command: " + problem};
  }
  events::explain(events::Level::debug, ledger::group_label(place_->kind(), place_->name()), " is joined in ", folder_);
  if (place_->covering_tree() != 0 && !request.wait && !is_flag(request, "guarantee")) {
    place_.reset();  // the outer run holds the guarantee, which the environment handed down to this one
    return;
  }
  for (Need &need : needs_) {
    need.place = place_->device(need.uuid, need.ordinal);
    if (need.place < 0) {
      throw Refusal{kOurError, ledger::group_label(place_->kind(), place_->name()) + " has no place left for device " +
                                   std::to_string(need.ordinal)};
    }
    place_->reclaim_from_dead(need.place);  // their limits no longer count
    if (need.limit != UINT64_MAX) {
      place_->state_limit(need.place, need.limit);
    }
    need.limit = place_->limit(need.place);
    if (is_guaranteed && need.limit == UINT64_MAX) {
      throw Refusal{kOurError, ledger::group_label(place_->kind(), place_->name()) +
                                   " has no limit, so that nothing can be guaranteed in it; add --group-limit"};
    }
    const std::uint64_t most = std::min(need.limit, need.total);
    if (need.bytes > most) {
      throw Refusal{kOurError, amount_of(need) +
                                   " can never fit: " + (most == need.total ? "it has " : "the group's limit is ") +
                                   config::show_exact_bytes(most)};
    }
  }
  if (request.wait) {
    wait(*request.wait, environment);
  } else {
    claim_now();
  }
  environment = std::move(with_tree);
  share_with_command();
}

// The command may outlive this process. Its first process inherits a descriptor that keeps the promise; processes that
// load the library keep it themselves.
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
  if (const std::uint64_t orders = place_->orders(); orders != place_->heeded()) {
    obey(orders);
  }
  for (const Need &need : needs_) {
    const std::uint64_t own = place_->own_guarantee(need.place);
    // Reads only one file, and never lowers the visible guarantee, as long as there is nothing to give up.
    if (need.ordered < own &&
        ledger::read_group_device(folder_, GroupKind::kTree, tree_, need.uuid).value_or(ledger::GroupDevice{}).claimed <
            own) {
      place_->lower_guarantee(need.place, need.ordered, [&] { return held_by_command(need); });
    }
  }
}

// The bytes that all processes of the tree hold; if those cannot be read, the most that they could hold.
std::uint64_t Reservation::held_by_command(const Need &need) const {
  std::string problem;
  for (const ledger::Group &group : ledger::read_groups(folder_, problem)) {
    if (group.kind != GroupKind::kTree || group.name != tree_) {
      continue;
    }
    const auto device = std::find_if(group.devices.begin(), group.devices.end(),
                                     [&](const ledger::GroupDevice &each) { return each.uuid == need.uuid; });
    return !group.problem.empty() ? UINT64_MAX : device == group.devices.end() ? 0 : device->claimed;
  }
  return problem.empty() ? 0 : UINT64_MAX;
}

void Reservation::obey(std::uint64_t orders) {
  std::vector<std::uint64_t> before;
  bool granted = true;
  for (Need &need : needs_) {
    const std::uint64_t ordered = place_->ordered_guarantee(need.place);
    const std::uint64_t bytes = ordered == ledger::shared::kUnordered ? need.bytes : ordered - 1;
    before.push_back(place_->own_guarantee(need.place));
    if (ordered == 0 || ordered == ledger::shared::kRefused) {
      continue;
    }
    need.ordered = bytes;
    granted = granted &&
              (bytes < before.back() || place_->guarantee(need.place, bytes, true) == ledger::ReserveOutcome::granted);
  }
  for (std::size_t i = 0; !granted && i < needs_.size(); ++i) {  // grant all devices or none
    needs_[i].ordered = UINT64_MAX;
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
