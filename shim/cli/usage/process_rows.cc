#include "cli/usage/process_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace ration::cli {

namespace {

using ledger::GroupKind;

constexpr std::size_t kTreeDigits = 8;

// One process is a member of two groups, whose files were read one after the other while it ran. Counters only grow, so
// the larger is newer; of what the process publishes the last counts; of the rest the more cautious value.
void merge(ledger::DeviceUse &into, const ledger::DeviceUse &other) {
  if (other.published_unix_ns > into.published_unix_ns) {
    into.used = other.used;
    into.stitching.granules = other.stitching.granules;
    into.stitching.blocks = other.stitching.blocks;
    into.published_unix_ns = other.published_unix_ns;
  }
  into.reserved = std::max(into.reserved, other.reserved);
  into.peak = std::max(into.peak, other.peak);
  into.limit = std::min(into.limit, other.limit);
  into.allocations = std::max(into.allocations, other.allocations);
  into.stitching.total = std::max(into.stitching.total, other.stitching.total);
  for (std::size_t i = 0; i < into.failures.size(); ++i) {
    into.failures[i] = std::max(into.failures[i], other.failures[i]);
  }
}

GroupOfRow group_of_row(const ledger::Group &group, const ledger::DeviceUse &use) {
  GroupOfRow out{group.kind, group.name, label_of(group.kind, group.name), ledger::kNoLimit, use.group_limit};
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
  if (row.group_label.empty()) {
    row.group_label = "-";
  }
}

std::size_t users_of(const ledger::Group &group, const std::string &uuid) {
  return static_cast<std::size_t>(
      std::count_if(group.members.begin(), group.members.end(), [&uuid](const auto &member) {
        return std::any_of(member.devices.begin(), member.devices.end(),
                           [&uuid](const ledger::DeviceUse &use) { return use.uuid == uuid; });
      }));
}

// A device that no member uses has a row where it has a limit, which shows what is free. Each group has at least one
// row.
void add_group_rows(const ledger::Group &group, std::vector<GroupRow> &rows) {
  GroupRow row{group.kind, group.name, label_of(group.kind, group.name), "", ledger::kNoLimit, 0, 0};
  const std::size_t before = rows.size();
  for (const ledger::GroupDevice &device : group.devices) {
    row.uuid = device.uuid;
    row.limit = device.limit;
    row.reserved = device.reserved;
    row.processes = users_of(group, device.uuid);
    if (row.limit != ledger::kNoLimit || row.reserved != 0 || row.processes != 0) {
      rows.push_back(row);
    }
  }
  if (rows.size() == before) {
    rows.push_back({group.kind, group.name, row.label, "", ledger::kNoLimit, 0, group.members.size()});
  }
}

auto order_of(const ProcessRow &row, SortKey key) {
  std::uint64_t first = 0;
  switch (key) {
    case SortKey::kReserved:
    case SortKey::kGroup:
      break;  // both continue with the reserved bytes
    case SortKey::kUsed:
      first = ~row.use.used;
      break;
    case SortKey::kPid:
      first = static_cast<std::uint64_t>(row.pid);
      break;
    case SortKey::kAge:
      first = row.start_unix_ns;
      break;
  }
  return std::make_tuple(key == SortKey::kGroup ? std::string_view(row.group_label) : std::string_view(), first,
                         ~row.use.reserved, row.pid, row.identity, std::string_view(row.use.uuid));
}

}  // namespace

std::uint64_t ProcessRow::failures() const {
  return std::accumulate(use.failures.begin(), use.failures.end(), std::uint64_t{0});
}

std::uint64_t GroupRow::free() const {
  return limit == ledger::kNoLimit ? limit : limit - std::min(limit, reserved);
}

std::string label_of(GroupKind kind, const std::string &name) {
  switch (kind) {
    case GroupKind::kNamed:
      return name;
    case GroupKind::kTree:
      return "tree:" + name.substr(0, kTreeDigits);
    case GroupKind::kContainer:
      return "container:" + name;
    case GroupKind::kQueue:
      return "queue";
    case GroupKind::kNone:
      break;
  }
  return "-";
}

Usage usage_of(const std::vector<ledger::Group> &groups, const std::string &folder_problem, std::uint64_t now_unix_ns) {
  Usage usage;
  usage.now_unix_ns = now_unix_ns;
  if (!folder_problem.empty()) {
    usage.problems.push_back(folder_problem);
  }
  std::map<std::pair<std::uint64_t, std::string>, ProcessRow> rows;  // by identity and device
  for (const ledger::Group &group : groups) {
    if (!group.problem.empty()) {
      usage.problems.push_back(group.problem);
      continue;
    }
    add_group_rows(group, usage.groups);
    for (const ledger::Member &member : group.members) {
      for (const ledger::DeviceUse &use : member.devices) {
        const auto [at, is_new] = rows.try_emplace({member.identity, use.uuid}, ProcessRow{member, use, {}, {}});
        if (!is_new) {
          merge(at->second.use, use);
        }
        at->second.groups.push_back(group_of_row(group, use));
      }
    }
  }
  for (auto &[key, row] : rows) {
    join_labels(row);
    usage.processes.push_back(std::move(row));
  }
  sort_rows(usage.processes, SortKey::kReserved);
  return usage;
}

void sort_rows(std::vector<ProcessRow> &rows, SortKey key) {
  std::sort(rows.begin(), rows.end(),
            [key](const ProcessRow &a, const ProcessRow &b) { return order_of(a, key) < order_of(b, key); });
}

}  // namespace ration::cli
