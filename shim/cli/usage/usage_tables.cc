#include "cli/usage/usage_tables.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "cli/text_table.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = kKib * 1024;
constexpr std::uint64_t kGib = kMib * 1024;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kShortUuid = 8;

std::string digits_of(const std::string &uuid) {
  const std::size_t mark = uuid.find('-');  // after "GPU" or "MIG"
  return mark == std::string::npos ? uuid : uuid.substr(mark + 1);
}

// The file name of a path; the table has no space for more.
std::string short_program(const std::string &program) {
  constexpr std::string_view kRun = "ration run ";  // what holds a guarantee, or waits
  const bool is_run = program.starts_with(kRun);
  const std::string path = program.substr(is_run ? kRun.size() : 0);
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return name.empty() ? program : (is_run ? std::string(kRun) : "") + name;
}

std::string bytes_or_dash(std::uint64_t bytes) {
  return short_bytes(bytes == 0 ? ledger::kNoLimit : bytes);
}

// Names devices by prefixes of their UUIDs that are unique in one snapshot.
class GpuNames {
 public:
  explicit GpuNames(const Usage &usage) {
    std::set<std::string> all;
    for (const ProcessRow &row : usage.processes) {
      all.insert(digits_of(row.use.uuid));
    }
    for (const GroupRow &row : usage.groups) {
      all.insert(digits_of(row.uuid));
    }
    for (auto at = all.begin(); at != all.end() && std::next(at) != all.end();
         ++at) {  // sorted: the longest common prefixes are adjacent
      const auto [differs, ignored] =
          std::mismatch(at->begin(), at->end(), std::next(at)->begin(), std::next(at)->end());
      length_ = std::max(length_, static_cast<std::size_t>(differs - at->begin()) + 1);
    }
  }

  [[nodiscard]] std::string of(const std::string &uuid) const {
    return uuid.empty() ? "-" : digits_of(uuid).substr(0, length_);
  }

 private:
  std::size_t length_ = kShortUuid;
};

}  // namespace

std::string short_bytes(std::uint64_t bytes) {
  if (bytes == ledger::kNoLimit) {
    return "-";
  }
  if (bytes < kGib) {
    return bytes < kKib   ? std::to_string(bytes) + "B"
           : bytes < kMib ? std::to_string(bytes / kKib) + "KiB"
                          : std::to_string(bytes / kMib) + "MiB";
  }
  const std::uint64_t hundredths = (bytes % kGib) * 100 / kGib;
  std::string text = std::to_string(bytes / kGib);
  if (text.size() < 3) {  // three digits in total
    const std::string fraction = std::to_string(100 + hundredths);
    text += '.';
    text += fraction.substr(1, 3 - text.size() + 1);
  }
  return text + "GiB";
}

std::string short_age(std::uint64_t start_unix_ns, std::uint64_t now_unix_ns) {
  const std::uint64_t seconds = (now_unix_ns - std::min(start_unix_ns, now_unix_ns)) / kSecondNs;
  if (seconds < 60) {
    return std::to_string(seconds) + "s";
  }
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + "m";
  }
  return seconds < 86400 ? std::to_string(seconds / 3600) + "h" : std::to_string(seconds / 86400) + "d";
}

std::vector<std::string> process_table(const Usage &usage, std::size_t width) {
  const auto some = [&usage](auto has) { return std::any_of(usage.processes.begin(), usage.processes.end(), has); };
  const bool containers = some([](const ProcessRow &row) { return !row.here.container.empty(); });
  const bool granules = some([](const ProcessRow &row) { return row.use.stitching.granules != 0; });
  const bool guarantees = some([](const ProcessRow &row) { return row.use.guarantee != 0; });
  const bool waits = some([](const ProcessRow &row) { return row.use.waiting != 0; });
  std::vector<Column> columns = {{"PID"},
                                 {"PROGRAM", Align::kLeft, Fit::kShrinks},
                                 {"GROUP", Align::kLeft, Fit::kShrinks},
                                 {"GPU", Align::kLeft},
                                 {"RESERVED"},
                                 {"USED"},
                                 {"LIMIT"},
                                 {"PEAK"}};
  if (containers) {
    columns.insert(columns.begin() + 1, {"CONTAINER", Align::kLeft, Fit::kShrinks});
  }
  if (granules) {
    columns.insert(columns.end(),
                   {{"GRANULES", Align::kRight, Fit::kYields}, {"STITCHED", Align::kRight, Fit::kYields}});
  }
  if (guarantees) {
    columns.push_back({"GUARANTEE", Align::kRight, Fit::kYields});
  }
  if (waits) {
    columns.push_back({"WAITS", Align::kRight, Fit::kYields});
  }
  columns.insert(columns.end(), {{"FAILS"}, {"AGE"}});
  const GpuNames gpus(usage);
  std::vector<std::vector<std::string>> rows;
  for (const ProcessRow &row : usage.processes) {
    std::vector<std::string> &cells = rows.emplace_back();
    cells = {std::to_string(row.shown_pid()), short_program(row.program),    row.group_label,
             gpus.of(row.use.uuid),           short_bytes(row.use.reserved), short_bytes(row.use.used),
             short_bytes(row.use.limit),      short_bytes(row.use.peak)};
    if (containers) {
      cells.insert(cells.begin() + 1, row.here.container.empty() ? "-" : config::printable(row.here.container));
    }
    if (granules) {
      cells.insert(cells.end(), {std::to_string(row.use.stitching.granules), std::to_string(row.use.stitching.blocks)});
    }
    if (guarantees) {
      cells.push_back(bytes_or_dash(row.use.guarantee));
    }
    if (waits) {
      cells.push_back(bytes_or_dash(row.use.waiting));
    }
    cells.insert(cells.end(), {std::to_string(row.failures()), short_age(row.start_unix_ns, usage.now_unix_ns)});
  }
  return table_lines(std::move(columns), std::move(rows), width);
}

std::vector<std::string> group_table(const Usage &usage, std::size_t width) {
  const auto some = [&usage](auto has) { return std::any_of(usage.groups.begin(), usage.groups.end(), has); };
  const bool guarantees = some([](const GroupRow &row) { return row.guaranteed != 0; });
  const bool waits = some([](const GroupRow &row) { return row.waiting != 0; });
  std::vector<Column> columns = {
      {"GROUP", Align::kLeft, Fit::kShrinks}, {"GPU", Align::kLeft}, {"LIMIT"}, {"RESERVED"}};
  if (guarantees) {
    columns.insert(columns.end(), {{"GUARANTEED", Align::kRight, Fit::kYields}, {"CLAIMED"}});
  }
  columns.insert(columns.end(), {{"FREE"}, {"PROCESSES"}});
  if (waits) {
    columns.push_back({"WAITING"});
  }
  const GpuNames gpus(usage);
  std::vector<std::vector<std::string>> rows;
  for (const GroupRow &row : usage.groups) {
    std::vector<std::string> &cells = rows.emplace_back();
    cells = {row.label, gpus.of(row.uuid), short_bytes(row.limit), short_bytes(row.reserved)};
    if (guarantees) {
      cells.insert(cells.end(), {bytes_or_dash(row.guaranteed), short_bytes(row.claimed)});
    }
    cells.insert(cells.end(), {short_bytes(row.free()), std::to_string(row.processes)});
    if (waits) {
      cells.push_back(std::to_string(row.waiting));
    }
  }
  return table_lines(std::move(columns), std::move(rows), width);
}

std::vector<std::string> both_tables(const Usage &usage, std::size_t width) {
  std::vector<std::string> lines;
  if (!usage.processes.empty()) {
    lines = process_table(usage, width);
  }
  if (!usage.groups.empty()) {
    if (!lines.empty()) {
      lines.emplace_back();
    }
    const std::vector<std::string> groups = group_table(usage, width);
    lines.insert(lines.end(), groups.begin(), groups.end());
  }
  return lines;
}

}  // namespace ration::cli
