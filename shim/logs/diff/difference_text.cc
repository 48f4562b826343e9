#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/diff/log_difference.h"
#include "logs/report/caveats.h"
#include "logs/report/report.h"

namespace ration::logs {
namespace {

constexpr const char *kSame = "=";

std::string signed_bytes(const BothFigures &figures) {
  if (figures.is_same()) {
    return kSame;
  }
  const std::string sign = figures.after > figures.before ? "+" : "-";
  return sign + config::show_bytes(figures.distance());
}

std::string signed_count(const BothFigures &figures) {
  if (figures.is_same()) {
    return kSame;
  }
  const std::string sign = figures.after > figures.before ? "+" : "-";
  return sign + std::to_string(figures.distance());
}

std::vector<std::string> sizes_row(const char *what, const BothFigures &figures) {
  return {what, config::show_bytes(figures.before), config::show_bytes(figures.after), signed_bytes(figures)};
}

std::vector<std::string> counts_row(const char *what, const BothFigures &figures) {
  return {what, std::to_string(figures.before), std::to_string(figures.after), signed_count(figures)};
}

bool has_changed(const CallerDifference &caller) {
  return caller.largest() != 0 || !caller.allocs.is_same();
}

void append(std::vector<std::string> &lines, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

void add_device_difference(std::vector<std::string> &lines, const DeviceDifference &device, std::size_t rows,
                           std::size_t width) {
  lines.push_back("");
  append(lines,
         cli::table_lines({{"DEVICE " + std::to_string(device.ordinal), cli::Align::kLeft}, {"A"}, {"B"}, {"CHANGE"}},
                          {sizes_row("peak used", device.peak), sizes_row("peak reserved", device.reserved_peak),
                           counts_row("allocations", device.allocs), counts_row("refusals", device.refusals),
                           counts_row("blocks not freed", device.leaks), sizes_row("not freed", device.leaked_bytes)},
                          width));
  std::vector<std::vector<std::string>> cells;
  std::size_t changed = 0;
  for (const CallerDifference &each : device.callers) {
    if (!has_changed(each)) {
      continue;
    }
    if (++changed > rows) {
      continue;
    }
    cells.push_back({signed_bytes(each.peak), signed_bytes(each.requested), signed_bytes(each.live),
                     signed_count(each.allocs),
                     each.is_new    ? "new"
                     : each.is_gone ? "gone"
                                    : "",
                     each.name});
  }
  if (cells.empty()) {
    lines.emplace_back("every caller held the same");
    return;
  }
  lines.push_back("");
  append(lines, cli::table_lines({{"AT THE PEAK"},
                                  {"IN ALL", cli::Align::kRight, cli::Fit::kYields},
                                  {"NOT FREED"},
                                  {"BLOCKS", cli::Align::kRight, cli::Fit::kYields},
                                  {"", cli::Align::kLeft},
                                  {"BY", cli::Align::kLeft, cli::Fit::kShrinks}},
                                 std::move(cells), width));
  if (changed > rows) {
    lines.push_back("and " + std::to_string(changed - rows) + " more that changed less");
  }
}

}  // namespace

std::vector<std::string> difference_text(const LogDifference &difference, std::size_t rows, std::size_t width) {
  std::vector<std::string> lines = {"A: " + config::printable(difference.before),
                                    "B: " + config::printable(difference.after)};
  const auto say_of = [&](std::size_t line, const std::string &end, std::uint64_t dropped) {
    lines[line] += (end.empty() ? "" : ", ") + end;
    if (dropped != 0) {
      lines[line] += ", lacks " + cli::counted(dropped, "record", "records");
    }
  };
  say_of(0, caveat_of_end(difference.before_ended, difference.before_cut_off), difference.dropped.before);
  say_of(1, caveat_of_end(difference.after_ended, difference.after_cut_off), difference.dropped.after);
  if (!difference.failed_allocs.is_same()) {
    lines.push_back("allocations that failed in the driver: " + signed_count(difference.failed_allocs));
  }
  for (const DeviceDifference &each : difference.devices) {
    if (!each.callers.empty() || each.refusals != BothFigures{} || each.reserved_peak != BothFigures{}) {
      add_device_difference(lines, each, rows, width);
    }
  }
  if (lines.size() == 2) {
    lines.push_back(nothing_requested(difference.before_ended && difference.after_ended));
  }
  return cli::fitting(lines, width);
}

}  // namespace ration::logs
