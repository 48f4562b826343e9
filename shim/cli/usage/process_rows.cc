#include "cli/usage/process_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include "base/saturating.h"
#include "cli/base/program_name.h"
#include "cli/usage/device_rows.h"
#include "cli/usage/tree_guarantees.h"

namespace ration::cli {

namespace {

using ledger::GroupKind;

// Merges the figures of a process that is in two groups, whose files were read one after the other while it ran.
// Counters only grow, so the larger value is newer; of the figures that the process publishes, the latest count; of all
// others, the more cautious value.
void merge(ledger::DeviceUse &into, const ledger::DeviceUse &other) {
  if (other.published_unix_ns > into.published_unix_ns) {
    into.used = other.used;
    into.stitching.granules = other.stitching.granules;
    into.stitching.blocks = other.stitching.blocks;
    into.published_unix_ns = other.published_unix_ns;
  }
  into.reserved = std::max(into.reserved, other.reserved);
  into.peak = std::max(into.peak, other.peak);
  into.peak_used = std::max(into.peak_used, other.peak_used);
  into.limit = std::min(into.limit, other.limit);
  into.guarantee = std::max(into.guarantee, other.guarantee);
  into.waiting = std::max(into.waiting, other.waiting);
  into.allocations = std::max(into.allocations, other.allocations);
  into.stitching.total = std::max(into.stitching.total, other.stitching.total);
  for (std::size_t i = 0; i < into.failures.size(); ++i) {
    into.failures[i] = std::max(into.failures[i], other.failures[i]);
  }
}

GroupOfRow group_of_row(const ledger::Group &group, const ledger::DeviceUse &use) {
  GroupOfRow out{group.kind,       group.name,      label_of(group.kind, group.name),
                 ledger::kNoLimit, use.group_limit, std::max(use.reserved, use.guarantee)};
  for (const ledger::GroupDevice &device : group.devices) {
    if (device.uuid == use.uuid) {
      out.limit = device.limit;
    }
  }
  return out;
}

void join_labels(ProcessRow &row) {
  for (const GroupOfRow &group : row.groups) {
    if (group.kind != GroupKind::kNone) {
      row.group_label += (row.group_label.empty() ? "" : ",") + group.label;
    }
  }
  row.group_label += row.group_label.empty() ? "-" : "";
}

// A member without a device waits for any device.
bool waits(const ledger::Member &member, const std::string &uuid) {
  return member.devices.empty()
             ? member.ticket != 0
             : std::any_of(member.devices.begin(), member.devices.end(),
                           [&uuid](const ledger::DeviceUse &use) { return use.uuid == uuid && use.waiting != 0; });
}

// True for a member that holds a guarantee for others if it holds and guarantees nothing there, or another row shows
// it.
bool has_no_row(const ledger::Member &member, const ledger::DeviceUse &use, const TreeGuarantees &trees) {
  const bool is_idle = use.reserved == 0 && use.used == 0 && use.guarantee == 0 && use.waiting == 0;
  return (member.tree != 0 && is_idle) || trees.is_represented(member, use.uuid);
}

// Counts the members on the row's device.
void count_members(const ledger::Group &group, const TreeGuarantees &trees, GroupRow &row) {
  for (const ledger::Member &member : group.members) {
    row.waiting += waits(member, row.uuid) ? 1 : 0;
    for (const ledger::DeviceUse &use : member.devices) {
      if (use.uuid == row.uuid) {
        row.processes += trees.is_stand_in(member) || has_no_row(member, use, trees) ? 0 : 1;
        row.guaranteed += use.guarantee;
        row.used += use.used;
      }
    }
  }
}

// A device that no member uses has a row, showing what is free, if it has a limit. Each group has at least one row.
void add_group_rows(const ledger::Group &group, const TreeGuarantees &trees, std::vector<GroupRow> &rows) {
  GroupRow of_none;
  of_none.kind = group.kind;
  of_none.name = group.name;
  of_none.label = label_of(group.kind, group.name);
  const std::size_t before = rows.size();
  for (const ledger::GroupDevice &device : group.devices) {
    GroupRow row = of_none;
    row.uuid = device.uuid;
    row.limit = group.kind == GroupKind::kQueue ? ledger::kNoLimit : device.limit;  // there it is the device's
    row.reserved = device.reserved;
    row.device_size = device.size;
    row.claimed = device.claimed;
    count_members(group, trees, row);
    if (row.limit != ledger::kNoLimit || row.claimed != 0 || row.processes != 0) {
      rows.push_back(std::move(row));
    }
  }
  if (rows.size() == before) {
    count_members(group, trees, of_none);
    of_none.processes = group.members.size();
    rows.push_back(std::move(of_none));
  }
}

std::string small_letters(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// Removes the folder from a path in the first word.
std::string without_folder(const std::string &words) {
  const std::size_t end = words.find(' ');
  const std::size_t slash = words.rfind('/', end);  // npos: searches everything
  return slash == std::string::npos || slash + 1 == std::min(end, words.size()) ? words : words.substr(slash + 1);
}

auto order_of(const ProcessRow &row, SortKey key) {
  std::uint64_t first = 0;
  std::string text;
  switch (key) {
    case SortKey::kReserved:
      break;  // all compare the reserved bytes next
    case SortKey::kUser:
      text = row.user;
      break;
    case SortKey::kGroup:
      text = row.group_label;
      break;
    case SortKey::kCommand:
      text = row.shown_command();
      break;
    case SortKey::kGpu:
      text = row.gpu == kNoIndex ? row.use.uuid : "";
      first = static_cast<std::uint64_t>(row.gpu);
      break;
    case SortKey::kUsed:
      first = ~row.use.used;
      break;
    case SortKey::kLimit:
      first = row.use.limit == ledger::kNoLimit ? ledger::kNoLimit : ~row.use.limit;
      break;
    case SortKey::kPeak:
      first = ~row.use.peak;
      break;
    case SortKey::kPeakUsed:
      first = ~row.use.peak_used;
      break;
    case SortKey::kFailures:
      first = ~row.refusals();
      break;
    case SortKey::kPid:
      first = static_cast<std::uint64_t>(row.shown_pid());
      break;
    case SortKey::kAge:
      first = row.start_unix_ns;
      break;
  }
  return std::make_tuple(std::move(text), first, ~row.use.reserved, row.pid, row.identity,
                         std::string_view(row.use.uuid));
}

}  // namespace

std::uint64_t ProcessRow::refusals() const {
  return std::accumulate(use.failures.begin(), use.failures.end(), std::uint64_t{0});
}

std::string ProcessRow::shown_command() const {
  const bool has_name = !command.empty() && command.front() != ' ';  // a program may be started with an empty name
  return has_name ? without_folder(command) : shown_program() + command;
}

std::string ProcessRow::shown_program() const {
  return program_name(program);
}

std::uint64_t GroupRow::free() const {
  return limit == ledger::kNoLimit ? limit : minus_or_zero(limit, claimed);
}

bool ProcessRow::is_in(const GroupRow &group) const {
  return std::any_of(groups.begin(), groups.end(),
                     [&group](const GroupOfRow &each) { return each.kind == group.kind && each.name == group.name; });
}

const DeviceRow *Usage::device(const std::string &uuid) const {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&uuid](const DeviceRow &each) { return each.uuid == uuid; });
  return found == devices.end() ? nullptr : &*found;
}

bool Usage::tells_nothing() const {
  return processes.empty() &&
         std::all_of(groups.begin(), groups.end(), [](const GroupRow &row) { return row.tells_nothing(); });
}

Usage usage_of(const std::vector<ledger::Group> &groups, const std::string &folder_problem, std::uint64_t now_unix_ns) {
  Usage usage;
  usage.now_unix_ns = now_unix_ns;
  if (!folder_problem.empty()) {
    usage.problems.push_back(folder_problem);
  }
  std::map<std::pair<std::uint64_t, std::string>, ProcessRow> rows;  // by identity and device
  const TreeProcesses processes = processes_of_trees(groups);
  for (const ledger::Group &group : groups) {
    if (!group.problem.empty()) {
      usage.problems.push_back(group.problem);
      continue;
    }
    const TreeGuarantees trees(group, processes);
    add_group_rows(group, trees, usage.groups);
    for (const ledger::Member &member : group.members) {
      for (ledger::DeviceUse use : member.devices) {
        if (has_no_row(member, use, trees)) {
          continue;
        }
        use.guarantee = trees.guarantee_of(member, use);
        const auto [at, is_new] =
            rows.try_emplace({member.identity, use.uuid}, ProcessRow{member, use, {}, {}, {}, {}, {}, kNoIndex});
        if (!is_new) {
          merge(at->second.use, use);
        }
        at->second.is_stand_in = at->second.is_stand_in || trees.is_stand_in(member);
        at->second.tree = std::max(at->second.tree, member.tree);
        at->second.ticket = std::max(at->second.ticket, member.ticket);
        at->second.groups.push_back(group_of_row(group, use));
      }
    }
  }
  for (auto &[key, row] : rows) {
    join_labels(row);
    usage.processes.push_back(std::move(row));
  }
  sort_rows(usage.processes, SortKey::kReserved);
  make_device_rows(usage);
  return usage;
}

void add_usage(Usage &into, Usage more) {
  const auto add = [](auto &rows, auto &others) {
    rows.insert(rows.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  };
  add(into.processes, more.processes);
  add(into.groups, more.groups);
  add(into.problems, more.problems);
  make_device_rows(into);
  into.now_unix_ns = std::max(into.now_unix_ns, more.now_unix_ns);
  sort_rows(into.processes, SortKey::kReserved);
}

bool begins_with_largest(SortKey key) {
  switch (key) {
    case SortKey::kPid:
    case SortKey::kUser:
    case SortKey::kGpu:
    case SortKey::kGroup:
    case SortKey::kCommand:
      return false;
    default:
      return true;
  }
}

void sort_rows(std::vector<ProcessRow> &rows, SortKey key, bool reversed) {
  std::sort(rows.begin(), rows.end(), [key, reversed](const ProcessRow &a, const ProcessRow &b) {
    return reversed ? order_of(b, key) < order_of(a, key) : order_of(a, key) < order_of(b, key);
  });
}

bool matches(const ProcessRow &row, std::string_view text) {
  const std::string wanted = small_letters(text);
  const auto has = [&wanted](const std::string &name) { return small_letters(name).find(wanted) != std::string::npos; };
  return has(row.program) || has(row.command) || has(row.user) || has(row.group_label) || has(row.here.container) ||
         has(std::to_string(row.shown_pid()));
}

}  // namespace ration::cli
