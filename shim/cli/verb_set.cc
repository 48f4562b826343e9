// `ration set`: changes the limit of a running group, or the limit and the guarantee of a running process. Layer: cli.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

#include "base/saturating.h"
#include "cli/base/exit_status.h"
#include "cli/base/group_label.h"
#include "cli/base/log.h"
#include "cli/base/verbs.h"
#include "cli/usage/host_processes.h"
#include "cli/usage/process_rows.h"
#include "cli/usage/snapshot.h"
#include "cli/usage/usage_tables.h"
#include "config/settings.h"
#include "config/settings_context.h"
#include "config/values/limit_map.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "ledger/group_view.h"
#include "ledger/membership.h"
#include "ledger/orders.h"
#include "logs/output/json_or_null.h"

namespace ration::cli {

namespace {

using ledger::Group;
using ledger::GroupKind;
using ledger::Member;

// How long to wait until a thread of the library takes note of the change, or the program's next call does.
constexpr std::chrono::milliseconds kNoteTaken{500};
constexpr std::chrono::milliseconds kBetweenLooksAtNote{10};
constexpr std::string_view kStated = "default";

// A size, one for each of several devices, or the value that was stated before. On error, one sentence.
struct Wanted {
  config::LimitMap sizes;  // empty: the value stated before

  [[nodiscard]] std::optional<std::uint64_t> bytes_on(const std::string &uuid, std::uint64_t total) const {
    return config::smallest_limit(sizes, {-1, uuid, total});
  }
};
std::variant<Wanted, std::string> wanted_of(const std::string &text) {
  if (text == kStated) {
    return Wanted{};
  }
  Wanted wanted;
  if (std::string wrong = config::parse_limit(text, wanted.sizes); !wrong.empty()) {
    const bool is_word = text.find_first_of("0123456789") == std::string::npos;
    return is_word ? "it is neither a size nor `default`; write, for example, 8GiB or 40%" : wrong;
  }
  if (std::any_of(wanted.sizes.begin(), wanted.sizes.end(), [](const auto &each) { return each.ordinal >= 0; })) {
    return "processes number their devices differently; write the UUID, or the beginning of it: GPU-1f2e=8GiB (`ration "
           "ps` has it)";
  }
  return wanted;
}

ledger::OrderedSize order_of(const Wanted &wanted) {
  return [wanted](const std::string &uuid, std::uint64_t total) -> std::optional<std::uint64_t> {
    return wanted.sizes.empty() ? std::nullopt
                                : std::optional(wanted.bytes_on(uuid, total).value_or(ledger::kUnchanged));
  };
}

// A guarantee without a device is one on each of the devices that are `used`; on all if none is.
ledger::OrderedSize order_of_guarantee(const Wanted &wanted, const std::vector<std::string> &used) {
  Wanted of_named = wanted;
  std::erase_if(of_named.sizes, [](const config::LimitItem &each) { return each.name.empty(); });
  return [all = order_of(wanted), named = of_named, used, is_default = wanted.sizes.empty()](
             const std::string &uuid, std::uint64_t total) -> std::optional<std::uint64_t> {
    const bool is_used = used.empty() || std::find(used.begin(), used.end(), uuid) != used.end();
    return is_default || is_used ? all(uuid, total) : named.bytes_on(uuid, total).value_or(ledger::kUnchanged);
  };
}

struct Target {
  const Group *group = nullptr;
  const Member *member = nullptr;
};

const Group *group_called(const std::vector<Group> &groups, const std::string &name, std::size_t &fitting) {
  const Group *found = nullptr;
  fitting = 0;
  for (const Group &group : groups) {
    const bool can_have_limit = group.kind != GroupKind::kNone && group.kind != GroupKind::kQueue;
    const char *const kind = group.kind == GroupKind::kTree        ? "tree:"
                             : group.kind == GroupKind::kContainer ? "container:"
                                                                   : "group:";
    if (can_have_limit &&
        (group.name == name || label_of(group.kind, group.name) == name || kind + group.name == name)) {
      found = &group;
      ++fitting;
    }
  }
  return found;
}

// The members that have this process ID here; if there are none, those that have it in their own PID namespace.
std::vector<const Member *> members_with(const std::vector<Group> &groups, std::int64_t pid) {
  HostProcesses here;
  std::vector<const Member *> found;
  for (const Group &group : groups) {
    for (const Member &member : group.members) {
      const bool is_known = std::any_of(found.begin(), found.end(),
                                        [&](const Member *each) { return each->identity == member.identity; });
      if (!is_known && (member.pid == pid || here.find(member).pid == pid)) {
        found.push_back(&member);
      }
    }
  }
  const auto is_here = [&](const Member *each) {
    return each->pid_namespace == own_pid_namespace() || here.find(*each).pid == pid;
  };
  if (std::any_of(found.begin(), found.end(), is_here)) {
    std::erase_if(found, [&](const Member *each) { return !is_here(each); });
  }
  return found;
}

bool is_in(const Group &group, std::uint64_t identity) {
  return std::any_of(group.members.begin(), group.members.end(),
                     [identity](const Member &each) { return each.identity == identity; });
}

// The process that holds the guarantee for this process's tree; the process itself if none of its trees has one.
const Member *holder_of_guarantee(const std::vector<Group> &groups, const Member &member) {
  for (const Group &tree : groups) {
    if (tree.kind != GroupKind::kTree || !is_in(tree, member.identity)) {
      continue;
    }
    for (const Group &group : groups) {
      for (const Member &each : group.members) {
        if (each.tree != 0 && each.tree == ledger::tree_number(tree.kind, tree.name)) {
          return &each;
        }
      }
    }
  }
  return &member;
}

// Throws a sentence if the text matches nothing, or more than one thing.
Target target_of(const std::vector<Group> &groups, const std::string &text) {
  std::int64_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error == std::errc() && end == text.data() + text.size() && pid > 0) {
    const std::vector<const Member *> members = members_with(groups, pid);
    std::size_t groups_called_so = 0;
    if (members.size() == 1 && group_called(groups, text, groups_called_so) != nullptr) {
      throw "a process and a group are called " + text + "; write group:" + text + " for the group";
    }
    if (members.size() == 1) {
      return {nullptr, members.front()};
    }
    if (members.size() > 1) {
      throw "several processes have the ID " + text + " in namespaces of their own; name the group of the one";
    }
  }
  std::size_t fitting = 0;
  const Group *const group = group_called(groups, text, fitting);
  if (fitting > 1) {
    throw "several groups are called " + config::shown(text) + "; write the full name that `ration ps --json` shows";
  }
  if (group == nullptr) {
    throw "no process or group " + config::in_quotes(text) +
        " of this user runs under Ration here (`ration ps` shows all that do)";
  }
  return {group, nullptr};
}

// Waits until the process has taken note; still `pending` if it makes no call.
ledger::OrderState outcome_of(const std::string &folder, std::uint64_t identity) {
  const auto deadline = std::chrono::steady_clock::now() + kNoteTaken;
  ledger::OrderState state = ledger::OrderState::pending;
  do {
    state = ledger::state_of_order(folder, identity);
    if (state != ledger::OrderState::pending) {
      return state;
    }
    std::this_thread::sleep_for(kBetweenLooksAtNote);
  } while (std::chrono::steady_clock::now() < deadline);
  return state;
}

// Throws a sentence if the change is not possible.
void refuse_what_cannot_apply(const SetRequest &request, const std::vector<Group> &groups, const Member &member,
                              const Member &holder) {
  if (holder.ticket != 0 || member.ticket != 0) {
    throw "process " + request.target + " is a run that waits to start; end it and start it with other options";
  }
  if (request.limit && member.tree != 0) {
    throw "process " + request.target +
        " holds a guarantee for what it started; write the ID of one of those for a limit";
  }
  const bool is_in_named = std::any_of(groups.begin(), groups.end(), [&](const Group &group) {
    return group.kind == GroupKind::kNamed && is_in(group, holder.identity);
  });
  if (request.guarantee && !is_in_named) {
    throw "process " + request.target + " is in no group that could leave it a guarantee";
  }
}

// The members that the guarantee of the holder covers: those of its tree, or itself alone.
std::vector<const Member *> covered_by(const std::vector<Group> &groups, const Member &holder) {
  std::vector<const Member *> covered;
  for (const Group &group : groups) {
    for (const Member &each : group.members) {
      const bool is_of_tree = group.kind == GroupKind::kTree && holder.tree != 0 &&
                              holder.tree == ledger::tree_number(group.kind, group.name);
      if (each.identity != holder.identity && is_of_tree) {
        covered.push_back(&each);
      }
    }
  }
  if (holder.tree == 0) {
    covered.push_back(&holder);
  }
  return covered;
}

// The devices that these members use, and those on which the holder has a guarantee already.
std::vector<std::string> devices_used_by(const std::vector<const Member *> &members, const Member &holder) {
  std::vector<std::string> uuids;
  for (const ledger::DeviceUse &use : holder.devices) {
    if (use.guarantee != 0) {
      uuids.push_back(use.uuid);
    }
  }
  for (const Member *member : members) {
    for (const ledger::DeviceUse &use : member->devices) {
      uuids.push_back(use.uuid);
    }
  }
  return uuids;
}

// What is wanted on the device; `otherwise` if it is not named, or not known.
std::uint64_t wanted_on(const std::string &uuid, const Wanted &wanted,
                        const std::vector<config::DeviceIdentity> &devices, std::uint64_t otherwise) {
  const auto device = std::find_if(devices.begin(), devices.end(),
                                   [&](const config::DeviceIdentity &each) { return each.uuid == uuid; });
  const auto bytes = device == devices.end() ? std::nullopt : wanted.bytes_on(uuid, device->total_bytes);
  return bytes.value_or(otherwise);
}

// Throws a sentence if no block could ever use all of a guarantee, which is for this process alone, because the limit
// is smaller.
void refuse_guarantee_above_limit(const Wanted &limit, const Wanted &guarantee, const SetRequest &request,
                                  const Member &member, const Member &holder,
                                  const std::vector<config::DeviceIdentity> &devices) {
  for (const ledger::DeviceUse &use : member.devices) {
    std::uint64_t guaranteed = 0;
    for (const ledger::DeviceUse &each : holder.devices) {
      guaranteed = each.uuid == use.uuid ? each.guarantee : guaranteed;
    }
    const std::uint64_t most = wanted_on(use.uuid, limit, devices, use.limit);
    const std::uint64_t least = wanted_on(use.uuid, guarantee, devices, guaranteed);
    const bool is_back = (request.limit && limit.sizes.empty()) || (request.guarantee && guarantee.sizes.empty());
    if (!is_back && least > most) {
      throw "a guarantee of " + config::show_exact_bytes(least) + " is more than the limit of process " +
          request.target + ", " + config::show_exact_bytes(most);
    }
  }
}

// The devices that the group, or the groups of the process, have seen.
std::vector<config::DeviceIdentity> devices_of(const Target &target, const std::vector<Group> &groups) {
  std::vector<config::DeviceIdentity> devices;
  for (const Group &group : groups) {
    const bool is_its = target.member == nullptr ? &group == target.group : is_in(group, target.member->identity);
    for (const ledger::GroupDevice &device : group.devices) {
      const auto is_it = [&](const config::DeviceIdentity &each) { return each.uuid == device.uuid; };
      if (is_its && std::none_of(devices.begin(), devices.end(), is_it)) {
        devices.push_back({-1, device.uuid, device.size});
      }
    }
  }
  return devices;
}

// Throws a sentence if a system file locks a smaller limit, which applies to every program here and cannot be exceeded.
void refuse_above_lock(const Wanted &limit, const std::string &given, const Target &target,
                       std::vector<config::DeviceIdentity> devices) {
  if (limit.sizes.empty()) {
    return;
  }
  std::vector<config::Problem> ignored;
  config::Settings settings = config::read_settings(config::own_context(), ignored);
  config::LimitMap asked = limit.sizes;
  config::set_source_of_new(asked, "--limit " + config::shown(given), false);
  if (target.group != nullptr) {
    for (config::Settings::Group &group : settings.groups) {
      if (kind_of(group.kind) == target.group->kind && group.name == target.group->name) {
        group.limit.insert(group.limit.end(), asked.begin(), asked.end());
      }
    }
  } else {
    settings.limit.insert(settings.limit.end(), asked.begin(), asked.end());
    std::erase_if(devices, [&](const config::DeviceIdentity &device) {  // it uses only some of them
      return std::none_of(target.member->devices.begin(), target.member->devices.end(),
                          [&](const ledger::DeviceUse &use) { return use.uuid == device.uuid; });
    });
  }
  if (const auto cut = settings.cut_by_locks(devices); !cut.empty()) {
    throw cut.front().line;
  }
}

// The limit that was wanted, as the user wrote it; with its bytes if that is something else.
std::string limit_words(const Wanted &limit, const std::string &given, const ledger::Guaranteed &refused) {
  const std::string shown = config::show_bytes(refused.limit);
  return limit.sizes.empty() ? "the limits that they ask for, " + shown
         : given == shown    ? given
                             : "--limit " + config::shown(given) + " (" + shown + ")";
}

// How much is left on each device in those groups of the member that can give guarantees.
std::string left_in_groups(const std::string &folder, std::uint64_t identity) {
  std::string problem;
  std::string text;
  for (const Group &group : ledger::read_groups(folder, problem)) {
    if (group.kind != GroupKind::kNamed || !is_in(group, identity)) {
      continue;
    }
    for (const ledger::GroupDevice &device : group.devices) {
      if (device.limit != ledger::kNoLimit) {
        text += (text.empty() ? "" : ", ") + config::show_exact_bytes(minus_or_zero(device.limit, device.claimed)) +
                " of " + config::show_exact_bytes(device.limit) + " are left in group " + group.name + " on " +
                device.uuid;
      }
    }
  }
  return text;
}

struct Outcome {
  int status = 0;
  const char *word = "done";
  std::string sentence;
};

Outcome outcome_text(ledger::OrderState state, const std::string &target, bool of_guarantee) {
  switch (state) {
    case ledger::OrderState::pending:
      return {of_guarantee ? kProblemSeen : 0, "pending",
              target + " is not in a CUDA call: the change applies from its next one on" +
                  (of_guarantee ? "; whether its group leaves that guarantee is not known yet" : "")};
    case ledger::OrderState::refused:
      return {kProblemSeen, "refused", "the guarantee was refused; the previous one stays in force: "};
    case ledger::OrderState::done:
      break;
  }
  return {};
}

// What is in force and held after the change.
nlohmann::ordered_json rows_after(const std::string &folder, const Target &target, NvmlProcess &nvml) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string problem;
  const auto limit_json = [](std::uint64_t limit) { return logs::or_null(limit != ledger::kNoLimit, limit); };
  for (const Group &group : ledger::read_groups(folder, problem)) {
    if (target.group != nullptr && group.kind == target.group->kind && group.name == target.group->name) {
      for (const ledger::GroupDevice &device : group.devices) {
        rows.push_back({{"uuid", device.uuid},
                        {"limit", limit_json(device.limit)},
                        {"reserved_bytes", device.reserved},
                        {"claimed_bytes", device.claimed}});
      }
      return rows;
    }
  }
  if (target.member != nullptr) {
    for (const ProcessRow &row : take_snapshot({.own = folder}, nvml).processes) {
      if (row.identity == target.member->identity) {
        rows.push_back({{"uuid", row.use.uuid},
                        {"limit", limit_json(row.use.limit)},
                        {"reserved_bytes", row.use.reserved},
                        {"guarantee", row.use.guarantee}});
      }
    }
  }
  return rows;
}

// The device's name in `ration ps`, according to its snapshot.
std::string shown_device(const std::string &uuid, const Usage &usage) {
  const DeviceRow *const device = usage.device(uuid);
  return "GPU " + GpuNames(usage).of(uuid, device == nullptr ? kNoIndex : device->gpu);
}

std::string sentence_of(const nlohmann::ordered_json &row, const Usage &usage) {
  const auto text = [&](const char *key) { return config::show_bytes(row[key].get<std::uint64_t>()); };
  const auto uuid = row["uuid"].get<std::string>();
  std::string line = shown_device(uuid, usage) + ": ";
  line += row["limit"].is_null() ? "no limit" : "limit " + text("limit");
  const DeviceRow *const device = usage.device(uuid);
  if (device != nullptr && row["limit"] == device->size) {
    line += " (all that the device has)";
  }
  line += ", " + text("reserved_bytes") + " held";
  if (row.contains("guarantee") && row["guarantee"] != 0) {
    line += ", " + text("guarantee") + " guaranteed";
  }
  if (row.contains("claimed_bytes") && row["claimed_bytes"] > row["reserved_bytes"]) {
    line += ", " + text("claimed_bytes") + " with what is guaranteed";
  }
  const auto most = row.value("claimed_bytes", row["reserved_bytes"].get<std::uint64_t>());
  if (!row["limit"].is_null() && most > row["limit"].get<std::uint64_t>()) {
    line += row.value("claimed_bytes", std::uint64_t{0}) > row["reserved_bytes"].get<std::uint64_t>()
                ? "; nothing but what is guaranteed is granted until that is less"
                : "; nothing more is granted until that is less";
  }
  return line;
}

int set(const SetRequest &request) {
  if (!request.limit && !request.guarantee) {
    throw std::string("nothing to set; write, for example: ration set lab --limit 8GiB");
  }
  Wanted limit;
  Wanted guarantee;
  for (const auto &[text, flag, into] :
       {std::tuple{&request.limit, "--limit", &limit}, std::tuple{&request.guarantee, "--guarantee", &guarantee}}) {
    if (*text) {
      auto read = wanted_of(**text);
      if (const std::string *wrong = std::get_if<std::string>(&read)) {
        throw std::string(flag) + " " + config::shown(**text) + ": " + *wrong + "; `default` takes a change back";
      }
      *into = std::get<Wanted>(read);
    }
  }
  const std::string folder = state_folder();
  std::string problem;
  const std::vector<Group> groups = ledger::read_groups(folder, problem);
  if (!problem.empty()) {
    throw problem;
  }
  const Target target = target_of(groups, request.target);
  const std::vector<config::DeviceIdentity> devices = devices_of(target, groups);
  for (const auto &[wanted, flag] : {std::pair{&limit, "--limit: "}, std::pair{&guarantee, "--guarantee: "}}) {
    if (const auto errors = config::errors_in_devices(wanted->sizes, devices); !errors.empty()) {
      throw flag + errors.front().sentence;
    }
  }
  refuse_above_lock(limit, request.limit.value_or(""), target, devices);
  Outcome outcome;
  if (target.group != nullptr) {
    if (request.guarantee) {
      throw std::string("a guarantee is a process's, not a group's; write its process ID");
    }
    std::optional<ledger::Guaranteed> refused;
    if (!ledger::order_group_limit(folder, target.group->kind, target.group->name, order_of(limit), refused, problem)) {
      const std::string sentence = "the limit of " + config::shown(request.target) + " was not changed: ";
      if (!refused) {
        throw sentence + problem;
      }
      outcome = {kProblemSeen, "refused",
                 sentence + config::show_bytes(refused->bytes) + " of " + refused->uuid +
                     " are guaranteed to its members, more than " + limit_words(limit, *request.limit, *refused) +
                     "; lower their guarantees first (ration set PID --guarantee)"};
    }
  } else {
    const Member *const of_run = holder_of_guarantee(groups, *target.member);
    const Member *const holder = request.guarantee ? of_run : target.member;
    refuse_what_cannot_apply(request, groups, *target.member, *holder);
    const std::vector<const Member *> covered = covered_by(groups, *of_run);
    if (covered.size() == 1) {
      refuse_guarantee_above_limit(limit, guarantee, request, *target.member, *of_run, devices);
    }
    ledger::MemberOrder of_limit;
    ledger::MemberOrder of_guarantee;
    if (request.limit) {
      of_limit.limit = order_of(limit);
    }
    if (request.guarantee) {
      (holder == target.member ? of_limit : of_guarantee).guarantee =
          order_of_guarantee(guarantee, devices_used_by(covered, *holder));
    }
    if ((of_limit.limit || of_limit.guarantee) &&
        !ledger::order_member(folder, target.member->identity, of_limit, problem)) {
      throw "process " + request.target + " has ended" + (problem.empty() ? "" : ": " + problem);
    }
    ledger::OrderState state = outcome_of(folder, target.member->identity);
    if (of_guarantee.guarantee) {
      ledger::order_member(folder, holder->identity, of_guarantee, problem);
      state = std::max(state, outcome_of(folder, holder->identity));
    }
    outcome = outcome_text(state, "process " + request.target, request.guarantee.has_value());
    if (state == ledger::OrderState::refused) {
      outcome.sentence += left_in_groups(folder, holder->identity);
    }
  }
  NvmlProcess nvml;
  const nlohmann::ordered_json rows = rows_after(folder, target, nvml);
  if (request.json) {
    std::cout << nlohmann::ordered_json{{"schema", "ration.set/1"},
                                        {"target", request.target},
                                        {"outcome", outcome.word},
                                        {"devices", rows}}
                     .dump(2)
              << '\n';
  } else {
    const bool is_pending = std::string_view(outcome.word) == "pending";
    const Usage usage = take_snapshot({.own = folder}, nvml);
    for (const nlohmann::ordered_json &row : is_pending ? nlohmann::ordered_json::array() : rows) {
      std::cout << sentence_of(row, usage) << '\n';
    }
  }
  if (!outcome.sentence.empty()) {
    log_line("set: " + outcome.sentence);
  } else if (request.guarantee && std::any_of(rows.begin(), rows.end(), [&](const nlohmann::ordered_json &row) {
               return row.value("guarantee", std::uint64_t{0}) >
                      wanted_on(row["uuid"].get<std::string>(), guarantee, devices, ledger::kNoLimit);
             })) {
    log_line("set: what is held of the earlier guarantee stays guaranteed until it is freed");
  }
  return flush_stdout() ? outcome.status : kOurError;
}

}  // namespace

int run_verb(const SetRequest &request) {
  try {
    return set(request);
  } catch (const std::string &sentence) {
    log_error("set: " + sentence);
    return kUsageError;
  }
}

}  // namespace ration::cli
