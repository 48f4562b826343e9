#include "cli/usage/prometheus_text.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "cli/usage/usage_json.h"

namespace ration::cli {

namespace {

// The labels, without braces, and the row that they identify.
template <class Row>
using Series = std::vector<std::pair<std::string, const Row *>>;

constexpr char kReplacement[] = "\xef\xbf\xbd";  // U+FFFD

// The format escapes only these three characters. Any other control character, including C1, would reach a terminal.
std::string label_value(const std::string &text) {
  const std::string valid = as_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto c = static_cast<unsigned char>(valid[i]);
    // `valid` is UTF-8, so there is a next byte.
    const bool c1 = c == 0xc2 && static_cast<unsigned char>(valid[i + 1]) < 0xa0;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || c == '"') {
      out += {'\\', valid[i]};
    } else if (c < ' ' || c == 0x7f || c1) {
      out += kReplacement;
      i += c1 ? 1 : 0;
    } else {
      out += valid[i];
    }
  }
  return out;
}

void add_label(std::string &labels, const char *name, const std::string &value) {
  labels += labels.empty() ? "" : ",";
  labels += name;
  labels += "=\"";
  labels += label_value(value);
  labels += '"';
}

// The named group of a process, which has at most one.
std::string group_of(const ProcessRow &row) {
  for (const GroupOfRow &group : row.groups) {
    if (group.kind == ledger::GroupKind::kNamed) {
      return group.name;
    }
  }
  return "-";
}

Series<ProcessRow> series_of(const Usage &usage, std::uint64_t own_pid_namespace) {
  Series<ProcessRow> series;
  std::set<std::string> taken;
  const bool of_all_users =
      std::any_of(usage.groups.begin(), usage.groups.end(), [](const GroupRow &row) { return !row.user.empty(); });
  for (const ProcessRow &row : usage.processes) {
    std::string labels;
    add_label(labels, "gpu", row.use.uuid);
    add_label(labels, "pid", std::to_string(row.pid));
    add_label(labels, "exe", row.program);
    add_label(labels, "group", group_of(row));
    if (row.pid_namespace != own_pid_namespace) {
      add_label(labels, "pid_namespace", std::to_string(row.pid_namespace));
    }
    if (!row.here.container.empty()) {
      add_label(labels, "container", row.here.container);
    }
    if (of_all_users) {
      add_label(labels, "user", row.user);
    }
    // The labels of two processes can be equal, if their namespaces are unknown or the kernel has reused a process ID.
    // A collector rejects a file with a duplicate series.
    if (!taken.insert(labels).second) {
      add_label(labels, "identity", std::to_string(row.identity));
    }
    series.emplace_back(std::move(labels), &row);
  }
  return series;
}

// Only named groups: the number of a tree or container is different in each run, so the number of series would grow
// without end. The row of a group whose members have requested nothing has no device.
Series<GroupRow> group_series_of(const Usage &usage) {
  Series<GroupRow> series;
  for (const GroupRow &row : usage.groups) {
    if (row.kind != ledger::GroupKind::kNamed || row.uuid.empty()) {
      continue;
    }
    std::string labels;
    add_label(labels, "gpu", row.uuid);
    add_label(labels, "group", row.name);
    if (!row.user.empty()) {  // if those of all users were read: two may share a name
      add_label(labels, "user", row.user);
    }
    series.emplace_back(std::move(labels), &row);
  }
  return series;
}

Series<DeviceRow> device_series_of(const Usage &usage) {
  Series<DeviceRow> series;
  for (const DeviceRow &row : usage.devices) {
    std::string labels;
    add_label(labels, "gpu", row.uuid);
    series.emplace_back(std::move(labels), &row);
  }
  return series;
}

void begin_family(std::string &out, const std::string &name, const char *type, const char *help) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void add_sample(std::string &out, const std::string &name, const std::string &labels, std::uint64_t value) {
  out += name + "{" + labels + "} " + std::to_string(value) + "\n";
}

template <class Of>
struct Family {
  const char *name, *type, *help;
  std::uint64_t (*value)(const Of &);  // kNoLimit: no sample
};

void add_families(std::string &out, const auto &families, const auto &series, auto of_row) {
  for (const auto &family : families) {
    begin_family(out, family.name, family.type, family.help);
    for (const auto &[labels, row] : series) {
      if (const std::uint64_t value = family.value(of_row(*row)); value != ledger::kNoLimit) {
        add_sample(out, family.name, labels, value);
      }
    }
  }
}

using Use = ledger::DeviceUse;
constexpr Family<Use> kFamilies[] = {
    {"ration_memory_limit_bytes", "gauge", "Limit of device memory for the process alone; absent without a limit.",
     [](const Use &use) { return use.limit; }},
    {"ration_memory_reserved_bytes", "gauge", "Device memory that is charged to the process.",
     [](const Use &use) { return use.reserved; }},
    {"ration_memory_used_bytes", "gauge", "Device memory in blocks that the program holds.",
     [](const Use &use) { return use.used; }},
    {"ration_memory_guarantee_bytes", "gauge",
     "Part of the group's limit that is guaranteed to the process, or to all processes of its `ration run` together.",
     [](const Use &use) { return use.guarantee; }},
    {"ration_memory_waiting_bytes", "gauge", "Device memory that the process waits for.",
     [](const Use &use) { return use.waiting; }},
    {"ration_memory_reserved_peak_bytes", "gauge", "Peak of ration_memory_reserved_bytes so far.",
     [](const Use &use) { return use.peak; }},
    {"ration_memory_used_peak_bytes", "gauge", "Peak of ration_memory_used_bytes so far.",
     [](const Use &use) { return use.peak_used; }},
    {"ration_allocations_total", "counter", "Blocks of device memory allocated by the process.",
     [](const Use &use) { return use.allocations; }},
    {"ration_granules", "gauge", "Pieces of physical memory that the process's pools hold.",
     [](const Use &use) { return use.stitching.granules; }},
    {"ration_stitched_blocks", "gauge", "Blocks that the program holds and that are joined from several pieces.",
     [](const Use &use) { return use.stitching.blocks; }},
    {"ration_stitched_total", "counter", "Blocks that were ever joined from several pieces.",
     [](const Use &use) { return use.stitching.total; }},
};

constexpr Family<GroupRow> kGroupFamilies[] = {
    {"ration_group_limit_bytes", "gauge", "Limit of device memory for the group; absent without a limit.",
     [](const GroupRow &row) { return row.limit; }},
    {"ration_group_reserved_bytes", "gauge", "Device memory that is charged to the group's members.",
     [](const GroupRow &row) { return row.reserved; }},
    {"ration_group_used_bytes", "gauge", "Device memory in blocks that the members' programs hold.",
     [](const GroupRow &row) { return row.used; }},
    {"ration_group_processes", "gauge", "Members of the group that use the device.",
     [](const GroupRow &row) { return std::uint64_t{row.processes}; }},
    {"ration_group_claimed_bytes", "gauge", "Device memory that the group's members hold or are guaranteed.",
     [](const GroupRow &row) { return row.claimed; }},
    {"ration_group_guaranteed_bytes", "gauge", "Sum of what is guaranteed to the group's members.",
     [](const GroupRow &row) { return row.guaranteed; }},
    {"ration_group_waiting", "gauge", "Members of the group that wait for device memory.",
     [](const GroupRow &row) { return std::uint64_t{row.waiting}; }},
};

constexpr Family<DeviceRow> kDeviceFamilies[] = {
    {"ration_device_memory_size_bytes", "gauge", "Size of the device's memory; absent where it is not known.",
     [](const DeviceRow &row) { return row.size != 0 ? row.size : ledger::kNoLimit; }},
    {"ration_device_memory_free_bytes", "gauge", "Free memory of the device; absent where NVML does not answer.",
     [](const DeviceRow &row) { return row.free.value_or(ledger::kNoLimit); }},
    {"ration_device_memory_others_bytes", "gauge",
     "Memory of the device that is held outside Ration; absent where NVML does not answer.",
     [](const DeviceRow &row) { return row.others.value_or(ledger::kNoLimit); }},
};

constexpr char kFailures[] = "ration_alloc_failures_total";

}  // namespace

std::string prometheus_text(const Usage &usage, std::uint64_t own_pid_namespace) {
  const Series<ProcessRow> series = series_of(usage, own_pid_namespace);
  std::string out;
  add_families(out, kFamilies, series, [](const ProcessRow &row) -> const Use & { return row.use; });
  begin_family(out, kFailures, "counter", "Allocations that were refused, by reason.");
  for (const auto &[labels, row] : series) {
    for (std::size_t i = 0; i < ledger::kFailureReasons.size(); ++i) {
      std::string with_reason = labels;
      add_label(with_reason, "reason", ledger::kFailureReasons[i]);
      add_sample(out, kFailures, with_reason, row->use.failures[i]);
    }
  }
  add_families(out, kGroupFamilies, group_series_of(usage),
               [](const GroupRow &row) -> const GroupRow & { return row; });
  add_families(out, kDeviceFamilies, device_series_of(usage),
               [](const DeviceRow &row) -> const DeviceRow & { return row; });
  return out;
}

}  // namespace ration::cli
