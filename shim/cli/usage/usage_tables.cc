#include "cli/usage/usage_tables.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "cli/usage/bars.h"
#include "cli/usage/device_rows.h"
#include "cli/usage/waiting.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli {

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kShortUuid = 8;

constexpr std::size_t kLeastOfName = 8;
constexpr std::string_view kTitleOfCommand = "COMMAND";
constexpr std::size_t kPartOfCommand = 7;  // its part of the width before other columns are omitted

std::string after_mark(const std::string &uuid) {
  const std::size_t mark = uuid.find('-');  // the mark after "GPU" or "MIG"
  return mark == std::string::npos ? uuid : uuid.substr(mark + 1);
}

std::string bytes_or_dash(std::uint64_t bytes) {
  return short_bytes(bytes == 0 ? ledger::kNoLimit : bytes);
}

// A column, and the text that it shows for a row.
template <class Row>
struct Shown {
  Column column;
  std::function<std::string(const Row &)> cell;
  std::optional<SortKey> key;
};

// Eight columns on a narrow screen, 32 on one of 200 columns. It depends only on the screen, so that bars do not jump
// as rows come and go.
std::size_t bar_width(std::size_t screen) {
  constexpr std::size_t kWide = 100;
  constexpr std::size_t kMost = 40;
  return screen < kWide ? std::max<std::size_t>(8, screen / 8) : std::min(12 + (screen - kWide) / 5, kMost);
}

std::string mark_of(const TableLook &look) {
  const bool is_falling = begins_with_largest(*look.sorted) != look.is_reversed;
  return look.is_unicode ? (is_falling ? "\u25bc" : "\u25b2") : is_falling ? ">" : "<";
}

// Marks the column that rows are sorted by, with different signs for the largest at the top and at the bottom.
template <class Row>
Table table_of_rows(std::vector<Shown<Row>> shown, const std::vector<Row> &rows, const TableLook &look) {
  std::vector<Column> columns;
  for (Shown<Row> &each : shown) {
    if (each.key && each.key == look.sorted) {
      each.column.title = mark_of(look) + each.column.title;
      each.column.fit = each.column.fit == Fit::kYields              ? Fit::kKeeps
                        : each.column.fit == Fit::kShrinksThenYields ? Fit::kShrinks
                                                                     : each.column.fit;
    }
    columns.push_back(each.column);
  }
  std::vector<std::vector<std::string>> cells;
  for (const Row &row : rows) {
    std::vector<std::string> &line = cells.emplace_back();
    for (const Shown<Row> &each : shown) {
      line.push_back(each.cell(row));
    }
  }
  return table_of(std::move(columns), std::move(cells), look.width);
}

Column name(const char *title, int rank) {
  return {title, Align::kLeft, Fit::kShrinksThenYields, rank, kLeastOfName};
}

Column yielding(const char *title, int rank, Align align = Align::kRight) {
  return {title, align, Fit::kYields, rank};
}

}  // namespace

std::string short_bytes(std::uint64_t bytes) {
  return bytes == ledger::kNoLimit ? "-" : config::show_bytes(bytes);
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

GpuNames::GpuNames(const Usage &usage) : length_(kShortUuid) {
  std::set<std::string> all;
  for (const DeviceRow &row : usage.devices) {
    all.insert(after_mark(row.uuid));
  }
  for (auto at = all.begin(); at != all.end() && std::next(at) != all.end();
       ++at) {  // they are sorted, so the longest common prefixes are adjacent
    const auto [differs, ignored] = std::mismatch(at->begin(), at->end(), std::next(at)->begin(), std::next(at)->end());
    length_ = std::max(length_, static_cast<std::size_t>(differs - at->begin()) + 1);
  }
}

std::string GpuNames::of(const std::string &uuid, int gpu) const {
  return uuid.empty() ? "-" : gpu != kNoIndex ? std::to_string(gpu) : digits_of(uuid);
}

std::string GpuNames::mark_of(const std::string &uuid) const {
  return uuid.substr(0, uuid.size() - after_mark(uuid).size() + length_);
}

std::string GpuNames::digits_of(const std::string &uuid) const {
  return after_mark(uuid).substr(0, length_);
}

// If not all columns fit, the pool's figures are omitted first, then ages, peaks, failures, guarantees and users. The
// columns that show which process holds what on which device stay.
Table process_table(const Usage &usage, const TableLook &look) {
  using Row = ProcessRow;
  const auto some = [&usage](auto has) { return std::any_of(usage.processes.begin(), usage.processes.end(), has); };
  const GpuNames gpus(usage);
  std::vector<Shown<Row>> shown = {
      {{"PID"}, [](const Row &row) { return std::to_string(row.shown_pid()); }, SortKey::kPid},
      {name("USER", 7), [](const Row &row) { return row.user.empty() ? "-" : row.user; }, SortKey::kUser}};
  if (some([](const Row &row) { return !row.here.container.empty(); })) {
    shown.push_back(
        {name("CONTAINER", 9),
         [](const Row &row) { return row.here.container.empty() ? "-" : config::printable(row.here.container); },
         {}});
  }
  if (some([](const Row &row) { return row.group_label != "-"; })) {
    shown.push_back({name("GROUP", 8), [](const Row &row) { return row.group_label; }, SortKey::kGroup});
  }
  shown.insert(
      shown.end(),
      {{{"GPU", Align::kLeft}, [&gpus](const Row &row) { return gpus.of(row.use.uuid, row.gpu); }, SortKey::kGpu},
       {{"RESERVED"}, [](const Row &row) { return short_bytes(row.use.reserved); }, SortKey::kReserved},
       {{"USED"}, [](const Row &row) { return short_bytes(row.use.used); }, SortKey::kUsed},
       {yielding("LIMIT", 12), [](const Row &row) { return short_bytes(row.use.limit); }, SortKey::kLimit},
       {yielding(kPeakReservedTitle, 3), [](const Row &row) { return short_bytes(row.use.peak); }, SortKey::kPeak},
       {yielding(kPeakUsedTitle, 4), [](const Row &row) { return short_bytes(row.use.peak_used); },
        SortKey::kPeakUsed}});
  if (some([](const Row &row) { return row.use.stitching.granules != 0; })) {
    shown.push_back(
        {yielding("PIECES", 0), [](const Row &row) { return std::to_string(row.use.stitching.granules); }, {}});
  }
  if (some([](const Row &row) { return row.use.stitching.blocks != 0; })) {
    shown.push_back(
        {yielding("JOINED", 1), [](const Row &row) { return std::to_string(row.use.stitching.blocks); }, {}});
  }
  if (some([](const Row &row) { return row.use.guarantee != 0; })) {
    shown.push_back({yielding("GUARANTEE", 6), [](const Row &row) { return bytes_or_dash(row.use.guarantee); }, {}});
  }
  if (some([](const Row &row) { return row.use.waiting != 0; })) {
    shown.push_back({yielding("WAITS", 10), [](const Row &row) { return bytes_or_dash(row.use.waiting); }, {}});
  }
  shown.push_back(
      {yielding("FAILS", 5), [](const Row &row) { return std::to_string(row.refusals()); }, SortKey::kFailures});
  shown.push_back({yielding("AGE", 2),
                   [&usage](const Row &row) { return short_age(row.start_unix_ns, usage.now_unix_ns); },
                   SortKey::kAge});
  if (look.has_bars) {
    shown.push_back({yielding(kBarTitle, 11, Align::kLeft),
                     [&](const Row &row) {
                       const DeviceRow *const device = usage.device(row.use.uuid);
                       const std::uint64_t size = device == nullptr ? 0 : device->size;
                       const std::uint64_t whole = row.use.limit != ledger::kNoLimit ? row.use.limit : size;
                       return bar_of({row.use.used, row.use.reserved, whole}, bar_width(look.width), look.is_unicode);
                     },
                     {}});
  }
  const std::size_t least =
      std::max(look.width / kPartOfCommand, look.end == 0 ? 0 : look.end + kTitleOfCommand.size());
  shown.push_back({{std::string(kTitleOfCommand), Align::kLeft, Fit::kShrinks, 0, least},
                   [](const Row &row) { return row.shown_command(); },
                   SortKey::kCommand});
  for (Shown<Row> &each : shown) {
    const std::string_view title = each.column.title;
    if (title != "GPU" && title != "RESERVED" && title != kBarTitle && title != kTitleOfCommand) {
      each.cell = [of_process = std::move(each.cell)](const Row &row) { return row.is_others ? "-" : of_process(row); };
    }
  }
  return table_of_rows(std::move(shown), usage.processes, look);
}

Table group_table(const Usage &usage, const TableLook &look) {
  using Row = GroupRow;
  const auto some = [&usage](auto has) { return std::any_of(usage.groups.begin(), usage.groups.end(), has); };
  const GpuNames gpus(usage);
  std::vector<Shown<Row>> shown;
  if (some([](const Row &row) { return !row.user.empty(); })) {
    shown.push_back(
        {{"USER", Align::kLeft, Fit::kShrinks, 0, kLeastOfName}, [](const Row &row) { return row.user; }, {}});
  }
  shown.push_back(
      {{"GROUP", Align::kLeft, Fit::kShrinks, 0, kLeastOfName}, [](const Row &row) { return row.label; }, {}});
  shown.push_back({{"GPU", Align::kLeft}, [&gpus](const Row &row) { return gpus.of(row.uuid, row.gpu); }, {}});
  if (look.has_bars) {
    shown.push_back({yielding(kBarTitle, 7, Align::kLeft),
                     [&look](const Row &row) {
                       const std::uint64_t whole = row.limit != ledger::kNoLimit ? row.limit : row.device_size;
                       return bar_of({row.used, row.reserved, whole}, bar_width(look.width), look.is_unicode);
                     },
                     {}});
  }
  shown.push_back({yielding("LIMIT", 5), [](const Row &row) { return short_bytes(row.limit); }, {}});
  shown.push_back({{"RESERVED"}, [](const Row &row) { return short_bytes(row.reserved); }, {}});
  if (some([](const Row &row) { return row.guaranteed != 0; })) {
    shown.push_back({yielding("GUARANTEED", 2), [](const Row &row) { return bytes_or_dash(row.guaranteed); }, {}});
    shown.push_back({yielding("CLAIMED", 3), [](const Row &row) { return short_bytes(row.claimed); }, {}});
  }
  shown.push_back({yielding("FREE", 6), [](const Row &row) { return short_bytes(row.free()); }, {}});
  shown.push_back({yielding("PROCESSES", 1), [](const Row &row) { return std::to_string(row.processes); }, {}});
  if (some([](const Row &row) { return row.waiting != 0; })) {
    shown.push_back({yielding("WAITING", 4), [](const Row &row) { return std::to_string(row.waiting); }, {}});
  }
  return table_of_rows(std::move(shown), usage.groups, look);
}

Table device_table(const Usage &usage, const TableLook &look) {
  using Row = DeviceRow;
  const auto some = [&usage](auto has) { return std::any_of(usage.devices.begin(), usage.devices.end(), has); };
  const GpuNames gpus(usage);
  const auto bytes_or_unknown = [](const std::optional<std::uint64_t> &bytes) {
    return bytes ? short_bytes(*bytes) : "-";
  };
  std::vector<Shown<Row>> shown = {
      {{"GPU", Align::kLeft}, [&gpus](const Row &row) { return gpus.of(row.uuid, row.gpu); }, {}},
      {name("NAME", 0), [](const Row &row) { return row.name.empty() ? "-" : config::printable(row.name); }, {}},
      {yielding("UUID", 3, Align::kLeft), [&gpus](const Row &row) { return gpus.mark_of(row.uuid); }, {}},
      {yielding("SIZE", 4), [](const Row &row) { return row.size == 0 ? "-" : short_bytes(row.size); }, {}},
      {{"RESERVED"}, [](const Row &row) { return short_bytes(row.reserved); }, {}},
      {yielding("OVERHEAD", 5), [&](const Row &row) { return bytes_or_unknown(row.overhead()); }, {}},
      {{"OTHERS"}, [&](const Row &row) { return bytes_or_unknown(row.others); }, {}},
      {{"FREE"}, [&](const Row &row) { return bytes_or_unknown(row.free); }, {}}};
  if (some([](const Row &row) { return row.utilisation.has_value(); })) {
    shown.push_back({yielding("UTIL", 2),
                     [](const Row &row) { return row.utilisation ? std::to_string(*row.utilisation) + "%" : "-"; },
                     {}});
  }
  if (some([](const Row &row) { return row.temperature.has_value(); })) {
    shown.push_back({yielding("TEMP", 1),
                     [](const Row &row) { return row.temperature ? std::to_string(*row.temperature) + "C" : "-"; },
                     {}});
  }
  return table_of_rows(std::move(shown), usage.devices, look);
}

std::vector<std::string> all_tables(Usage usage, std::size_t width) {
  const std::vector<std::string> waiting = waiting_lines(usage);
  add_rows_of_others(usage);
  std::erase_if(usage.groups, [](const GroupRow &row) { return row.tells_nothing(); });
  std::vector<std::string> lines;
  const auto add = [&lines](const std::vector<std::string> &part) {
    if (!lines.empty()) {
      lines.emplace_back();
    }
    lines.insert(lines.end(), part.begin(), part.end());
  };
  if (!usage.processes.empty()) {
    add(process_table(usage, {width}).lines);
  }
  if (!usage.groups.empty()) {
    add(group_table(usage, {width}).lines);
  }
  const auto is_known = [](const DeviceRow &row) { return !row.name.empty() || row.free; };
  if (std::any_of(usage.devices.begin(), usage.devices.end(), is_known)) {
    add(device_table(usage, {width}).lines);
  }
  if (!waiting.empty()) {
    lines.emplace_back();
  }
  for (const std::string &line : waiting) {
    for (std::string &part : wrapped(line, width)) {
      lines.push_back(std::move(part));
    }
  }
  return lines;
}

}  // namespace ration::cli
