#include "cli/run/run_summary.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "cli/base/group_label.h"
#include "cli/base/program_name.h"
#include "cli/base/text_table.h"
#include "cli/base/text_width.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "events/event.h"
#include "logs/output/json_or_null.h"
#include "logs/reader/log_names.h"

namespace ration::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kManyUnused = 64U << 20U;  // bytes: twice the step by which a driver's pool grows

constexpr std::size_t kMostShown = 3;  // each takes 2 or 3 lines; then a title, a remainder, pinned memory

struct Row {
  const events::Summary *process;
  std::size_t ordinal;
  const events::Summary::Device *device;
};

std::uint64_t refused(const events::Summary::Device &device) {
  return std::accumulate(device.denied, device.denied + events::kReasonCount, std::uint64_t{0});
}

bool was_used(const events::Summary::Device &device) {
  return device.allocs != 0 || device.reserved_peak_bytes != 0 || refused(device) != 0;
}

std::string name_of(const events::Summary &process) {
  return config::printable(process.program) + " (pid " + std::to_string(process.pid) + ")";
}

bool is_same(const events::Summary::Group &a, const events::Summary::Group &b) {
  return a.kind == b.kind && a.name == b.name && a.random == b.random;
}

// The most that any process saw claimed in the group on the device: each looked only when it took memory itself.
std::uint64_t most_claimed(const events::Summary::Group &group, const std::string &uuid,
                           const std::vector<events::Summary> &processes) {
  std::uint64_t most = group.most_claimed;
  for (const events::Summary &process : processes) {
    for (const events::Summary::Device &device : process.devices) {
      for (const events::Summary::Group &each : device.groups) {
        most = device.uuid == uuid && is_same(each, group) ? std::max(most, each.most_claimed) : most;
      }
    }
  }
  return most;
}

std::string spoken(const events::Summary::Group &group) {
  switch (static_cast<ledger::GroupKind>(group.kind)) {
    case ledger::GroupKind::kNamed:
      return "the group " + config::printable(group.name);
    case ledger::GroupKind::kContainer:
      return "the container";
    default:
      return label_of(static_cast<ledger::GroupKind>(group.kind), config::printable(group.name));
  }
}

// A tree without a limit exists only for its guarantee; a named group without one is what somebody asked for.
std::string limits(const Row &row, const std::vector<events::Summary> &processes) {
  std::string text;
  if (row.device->limit_asked) {
    text = " of the limit of " + config::show_bytes(row.device->limit) +
           (row.device->limit_is_later ? " (set while it ran)" : "");
  }
  std::string without;
  for (const events::Summary::Group &group : row.device->groups) {
    const std::string all =
        " (all members: up to " + config::show_bytes(most_claimed(group, row.device->uuid, processes)) + " seen)";
    if (group.limit != 0) {
      text += std::string(text.empty() ? "" : " and") + " of " + spoken(group) + "'s limit of " +
              config::show_bytes(group.limit) + all;
    } else if (static_cast<ledger::GroupKind>(group.kind) == ledger::GroupKind::kNamed) {
      without = ", in " + spoken(group) + all;
    }
  }
  return (text.empty() ? ", no limit" : text) + without;
}

std::string peak_line(const Row &row, const std::vector<events::Summary> &processes) {
  return name_of(*row.process) + " device " + std::to_string(row.ordinal) + ": used at most " +
         config::show_bytes(row.device->peak_bytes) + " and reserved at most " +
         config::show_bytes(row.device->reserved_peak_bytes) +
         (row.device->allocs == 0 && row.device->reserved_peak_bytes != 0 ? " (for graphs, or in advance)" : "") +
         limits(row, processes);
}

// If several groups have a limit, the summary file does not say which one refused.
std::string limit_of_group(const events::Summary::Device &device) {
  std::string which;
  for (const events::Summary::Group &group : device.groups) {
    if (group.limit != 0) {
      const auto kind = static_cast<ledger::GroupKind>(group.kind);
      which = !which.empty()                          ? "a group's limit"
              : kind == ledger::GroupKind::kContainer ? "the container's limit"
              : kind == ledger::GroupKind::kTree      ? "the limit of its --group-tree"
                                                      : "the group's limit";
    }
  }
  return which.empty() ? "the group's limit" : which;
}

std::string spoken(events::Reason reason, const events::Summary::Device &device) {
  switch (reason) {
    case events::Reason::limit:
      return "over the limit";
    case events::Reason::group:
      return "over " + limit_of_group(device);
    case events::Reason::device:
      return "because the device was full";
    case events::Reason::pool_holds:
      return "because the pool was fragmented";
    case events::Reason::fault:
      break;
  }
  return "on purpose (--fail)";
}

std::string refusals(const events::Summary::Device &device) {
  std::string line = std::to_string(refused(device)) + " refused";
  const char *separator = ": ";
  for (int i = 0; i < events::kReasonCount; ++i) {
    if (device.denied[i] != 0) {
      line += std::exchange(separator, ", ") + std::to_string(device.denied[i]) + " " +
              spoken(static_cast<events::Reason>(i), device);
    }
  }
  return line;
}

std::string count_line(const Row &row) {
  const events::Summary::Device &device = *row.device;
  std::string line = "  " + counted(device.allocs, "allocation, ", "allocations, ") +
                     counted(device.frees, "free, ", "frees, ") + refusals(device);
  if (const auto &largest = device.largest_refused; largest.bytes != 0) {
    line += "; largest refused: " + config::show_bytes(largest.bytes) + " requested";
    const std::string lack = events::lack_words(largest.lacking, largest.least, largest.bytes, config::show_bytes);
    if (!lack.empty()) {
      line += ", " + lack;
    } else if (largest.largest_free < largest.bytes) {
      line += ", the largest free piece had " + config::show_bytes(largest.largest_free);
    }
  }
  if (device.live_count != 0) {
    line += "; not freed: " + counted(device.live_count, "block, ", "blocks, ") + config::show_bytes(device.live_bytes);
  }
  if (device.overhead_peak != 0) {
    line += "; the driver's own memory: peak " + config::show_bytes(device.overhead_peak);
    if (device.overhead_unmeasured != 0) {
      line += " without that of " + counted(device.overhead_unmeasured, "context", "contexts");
    }
  }
  return line;
}

// Why far more was reserved than used; empty if that is not so.
std::string unused_line(const events::Summary::Device &device) {
  const std::uint64_t reserved = device.reserved_peak_bytes;
  if (device.peak_bytes >= reserved / 4 || reserved - device.peak_bytes < kManyUnused || device.allocs == 0) {
    return "";
  }
  if (device.preallocated >= reserved / 2) {
    return "  most of it was never used: " + config::show_bytes(device.preallocated) +
           " was preallocated (with RATION_PREALLOCATE=false the pool takes what is needed)";
  }
  return "  most of it was not used at once: pools grow in steps, and give freed memory out again only when the GPU is "
         "done with it";
}

// Empty if no holder is known.
std::string holders_line(const events::Summary::Device &device) {
  std::string line;
  for (const events::Holder &holder : device.holders) {
    if (holder.pid == 0) {
      line += (line.empty() ? "  " : "; ") + config::show_bytes(holder.reserved) + " of the device are held " +
              events::kOutside + " now";
      continue;
    }
    const std::string_view path(holder.program);  // or a command: "ration run ./train"
    line += (line.empty() ? "  at the first refusal: " : ", ") +
            config::printable(path.starts_with('/') ? path.substr(path.rfind('/') + 1) : path) + " (pid " +
            std::to_string(holder.pid) + ") ";
    line += events::held_words(holder.reserved, holder.guarantee, "held", "kept", config::show_bytes);
  }
  line += device.more_holders != 0 ? ", and " + std::to_string(device.more_holders) + " more" : "";
  return line;
}

// A line about the rows that are not shown. REQUIRES: there are more rows than are shown.
std::string remainder(const std::vector<Row> &rows) {
  std::uint64_t total = 0;
  for (std::size_t i = kMostShown; i < rows.size(); ++i) {
    total += refused(*rows[i].device);
  }
  return "and " + std::to_string(rows.size() - kMostShown) + " more that used at most " +
         config::show_bytes(rows[kMostShown].device->peak_bytes) + " each" +
         (total == 0
              ? ""
              : ", of whose allocations " + std::to_string(total) + (total == 1 ? " was" : " were") + " refused");
}

const char *spoken_error(int error) {
  switch (error) {
    case EFBIG:
      return "the limit of file sizes (ulimit -f) is reached";
    case EBADF:
      return "the program closed it, or its folder is gone";
    case 0:
      return "there was no memory";
    default:
      return std::strerror(error);
  }
}

// Empty if no log lost anything.
std::string lost_line(const std::vector<events::Summary> &processes) {
  std::uint64_t lost = 0;
  std::size_t logs = 0;
  int error = 0;
  for (const events::Summary &process : processes) {
    lost += process.lost_records;
    logs += process.lost_records != 0 ? 1 : 0;
    error = process.lost_error != 0 ? process.lost_error : error;
  }
  const std::string whose = processes.size() > 1 ? " of " + counted(logs, "process", "processes") : "";
  return lost == 0 ? ""
                   : "the log" + whose + " is incomplete: " + counted(lost, "record", "records") +
                         " could not be written: " + spoken_error(error);
}

bool has_failures(const events::Summary &process) {
  return process.failed_allocs != 0 || process.failed_frees != 0 || process.refused_shares != 0;
}

// The failures of all processes that concern no device; empty if there are none.
std::string failure_line(const std::vector<events::Summary> &processes) {
  events::Summary all;
  const events::Summary *one = nullptr;
  std::size_t failed = 0;
  for (const events::Summary &process : processes) {
    one = has_failures(process) ? &process : one;
    failed += has_failures(process) ? 1 : 0;
    all.failed_allocs += process.failed_allocs;
    all.failed_frees += process.failed_frees;
    all.refused_shares += process.refused_shares;
  }
  std::string line;
  const auto add = [&line](std::uint64_t count, const std::string &single, const std::string &many, const char *what) {
    if (count != 0) {
      line += (line.empty() ? "" : ", ") + counted(count, single, many) + what;
    }
  };
  add(all.failed_allocs, "allocation", "allocations", " failed in the driver");
  add(all.failed_frees, "free", "frees", " refused");
  add(all.refused_shares, "handle", "handles", " to share memory refused (the pool holds it)");
  if (line.empty() || processes.size() == 1) {
    return line.empty() ? "" : "  " + line;
  }
  return (failed == 1 ? name_of(*one) : std::to_string(failed) + " processes") + ": " + line;
}

// The process that took the most memory of a kind that has no limit; empty if none took any.
std::string unlimited_line(const std::vector<events::Summary> &processes, const char *kind,
                           std::uint64_t events::Summary::*peak, std::uint64_t events::Summary::*left) {
  const auto most = std::max_element(processes.begin(), processes.end(), [peak](const auto &a, const auto &b) {
    return std::make_tuple(a.*peak, b.pid) < std::make_tuple(b.*peak, a.pid);
  });
  if ((*most).*peak == 0) {
    return "";
  }
  const std::string whose = processes.size() > 1 ? name_of(*most) : " ";
  return whose + " " + kind + ": peak " + config::show_bytes((*most).*peak) + ", no limit" +
         ((*most).*left != 0 ? "; not freed: " + config::show_bytes((*most).*left) : "");
}

// The process that asked for the most unknown functions that may take memory; empty if none did.
std::string unknown_line(const std::vector<events::Summary> &processes, bool is_logged) {
  const auto most = std::max_element(processes.begin(), processes.end(), [](const auto &a, const auto &b) {
    return std::make_tuple(a.unknown_of_memory, b.pid) < std::make_tuple(b.unknown_of_memory, a.pid);
  });
  if (most->unknown_of_memory == 0) {
    return "";
  }
  std::string line = processes.size() > 1 ? name_of(*most) + " " : "";
  const std::string at_least = most->unknown_is_cut ? "at least " : "";
  line += "asked for " + at_least + counted(most->unknown_of_memory, "function", "functions") +
          " that this Ration does not know, or not in that version, and that may take memory:";
  for (const std::string &name : most->unknown) {
    line += (line.back() == ':' ? " " : ", ") + config::printable(name);
  }
  if (most->unknown_of_memory > most->unknown.size()) {
    line += " and " + at_least + std::to_string(most->unknown_of_memory - most->unknown.size()) + " more";
  }
  return line + (is_logged ? " (`ration report LOG` explains)"
                           : " (run again with --log FILE, and `ration report FILE` explains)");
}

Json device_json(const events::Summary::Device &device, std::size_t ordinal,
                 const std::vector<events::Summary> &processes) {
  Json refused = Json::object();
  for (int i = 0; i < events::kReasonCount; ++i) {
    refused[events::name_of(static_cast<events::Reason>(i))] = device.denied[i];
  }
  Json groups = Json::array();
  for (const events::Summary::Group &group : device.groups) {
    const auto kind = static_cast<ledger::GroupKind>(group.kind);
    groups.push_back({{"group", label_of(kind, group.name)},
                      {"name", group.name},
                      {"kind", kind_name(kind)},
                      {"limit", logs::or_null(group.limit != 0, group.limit)},
                      {"claimed_peak_bytes", most_claimed(group, device.uuid, processes)}});
  }
  Json holders = Json::array();
  for (const events::Holder &each : device.holders) {
    holders.push_back({{"pid", logs::or_null(each.pid != 0, each.pid)},
                       {"program", program_name(each.program)},
                       {"reserved_bytes", each.reserved},
                       {"guarantee", each.guarantee}});
  }
  const auto &largest = device.largest_refused;
  return {{"dev", ordinal},
          {"uuid", device.uuid},
          {"limit", logs::or_null(device.limit_asked, device.limit)},
          {"limit_set_later", device.limit_is_later},
          {"group_limit", logs::or_null(device.group_limit != 0, device.group_limit)},
          {"peak_bytes", device.peak_bytes},
          {"reserved_peak_bytes", device.reserved_peak_bytes},
          {"preallocated_bytes", device.preallocated},
          {"allocs", device.allocs},
          {"frees", device.frees},
          {"refusals_by_reason", std::move(refused)},
          {"largest_refused_bytes", largest.bytes},
          {"lacking_bytes", logs::or_null(largest.lacking != 0, largest.lacking)},
          {"largest_free_bytes",
           logs::or_null(largest.bytes != 0 && largest.largest_free != UINT64_MAX, largest.largest_free)},
          {"holders", std::move(holders)},
          {"live_blocks", device.live_count},
          {"live_bytes", device.live_bytes},
          {"overhead_peak_bytes", device.overhead_peak},
          {"groups", std::move(groups)}};
}

}  // namespace

std::string summary_json(const std::vector<events::Summary> &summaries) {
  Json document = {{"schema", "ration.summary/1"}, {"processes", Json::array()}};
  for (const events::Summary &process : summaries) {
    Json row = {{"pid", process.pid},
                {"program", process.program},
                {"log", logs::or_null(!process.log.empty(), process.log)},
                {"dropped", process.lost_records},
                {"dropped_reason", logs::or_null(process.lost_records != 0, spoken_error(process.lost_error))},
                {"failed_allocs", process.failed_allocs},
                {"failed_frees", process.failed_frees},
                {"pinned_peak_bytes", process.host_peak_bytes},
                {"managed_peak_bytes", process.managed_peak_bytes},
                {"devices", Json::array()}};
    for (std::size_t i = 0; i < process.devices.size(); ++i) {
      if (was_used(process.devices[i])) {
        row["devices"].push_back(device_json(process.devices[i], i, summaries));
      }
    }
    document["processes"].push_back(std::move(row));
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<events::Summary> read_summaries(const std::string &folder) {
  std::vector<events::Summary> summaries;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    events::Summary summary;
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && events::read_summary(entry->path().string(), summary)) {
      summaries.push_back(std::move(summary));
    }
  }
  return summaries;
}

std::vector<std::string> log_files(const std::vector<events::Summary> &summaries) {
  std::error_code ignored;
  const std::string here = std::filesystem::current_path(ignored).string() + "/";
  std::vector<std::string> names;
  for (const events::Summary &process : summaries) {
    std::string name = process.log.empty() ? "" : logs::present_log(process.log);
    if (name.empty() || !std::filesystem::is_regular_file(name, ignored)) {
      continue;  // a device, or it was moved away
    }
    names.push_back(here.size() > 1 && name.starts_with(here) ? name.substr(here.size()) : name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string log_names(const std::vector<std::string> &names) {
  std::string line = names.size() > 1 ? "logs: " : "log: ";
  for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
    line += (i == 0 ? "" : ", ") + config::printable(names[i]);
  }
  if (names.size() > kMostShown) {
    line += " and " + std::to_string(names.size() - kMostShown) + " more";
  }
  return names.empty() ? "" : line;
}

std::vector<std::string> summary_lines(const std::vector<events::Summary> &summaries, bool is_logged) {
  if (summaries.empty()) {
    return {};
  }
  std::vector<Row> rows;
  for (const events::Summary &process : summaries) {
    for (std::size_t i = 0; i < process.devices.size(); ++i) {
      if (was_used(process.devices[i])) {
        rows.push_back({&process, i, &process.devices[i]});
      }
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
    return std::make_tuple(~a.device->peak_bytes, a.process->pid, a.ordinal) <
           std::make_tuple(~b.device->peak_bytes, b.process->pid, b.ordinal);
  });
  std::vector<std::string> lines;
  const auto add = [&lines](std::string line) {
    if (!line.empty()) {
      lines.push_back(std::move(line));
    }
  };
  if (summaries.size() > 1) {
    const auto idle = std::count_if(summaries.begin(), summaries.end(), [](const events::Summary &process) {
      return std::none_of(process.devices.begin(), process.devices.end(), was_used);
    });
    add(std::to_string(summaries.size()) + " processes used CUDA" +
        (idle == 0 || rows.empty() ? "" : ", " + std::to_string(idle) + " of them without any device memory"));
  }
  if (rows.empty()) {
    add("no device memory was requested");
  }
  for (std::size_t i = 0; i < std::min(rows.size(), kMostShown); ++i) {
    add(peak_line(rows[i], summaries));
    add(unused_line(*rows[i].device));
    add(count_line(rows[i]));
    add(holders_line(*rows[i].device));
  }
  if (rows.size() > kMostShown) {
    add(remainder(rows));
  }
  add(failure_line(summaries));
  using Summary = events::Summary;
  add(unlimited_line(summaries, "pinned host memory", &Summary::host_peak_bytes, &Summary::host_bytes));
  add(unlimited_line(summaries, "managed memory", &Summary::managed_peak_bytes, &Summary::managed_bytes));
  add(unknown_line(summaries, is_logged));
  add(lost_line(summaries));
  return lines;
}

}  // namespace ration::cli
