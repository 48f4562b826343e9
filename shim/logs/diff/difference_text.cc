#include <algorithm>
#include <cmath>
#include <cstdio>
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
constexpr auto kBytes = &config::show_bytes;

using Show = std::string (*)(std::uint64_t);

std::string as_count(std::uint64_t count) {
  return std::to_string(count);
}

std::string change_of(const BothFigures &figures, Show show) {
  return figures.is_same() ? kSame : (figures.after > figures.before ? "+" : "-") + show(figures.distance());
}

// The change as a part of the figure before, such as "+12%".
std::string percent_of(const BothFigures &figures) {
  if (figures.is_same() || figures.before == 0) {
    return "";
  }
  char text[32];
  const double percent = static_cast<double>(figures.change()) / static_cast<double>(figures.before) * 100;
  std::snprintf(text, sizeof(text), std::fabs(percent) < 1000 ? "%+.3g%%" : "%+.0f%%", percent);
  return text;
}

std::vector<std::string> row_of(const char *what, const BothFigures &figures, Show show) {
  return {what, show(figures.before), show(figures.after), change_of(figures, show), percent_of(figures)};
}

bool has_changed(const CallerDifference &caller) {
  return caller.largest() != 0 || !caller.allocs.is_same();
}

void append(std::vector<std::string> &lines, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

std::vector<std::string> row_of_peak(const BothFigures &peak, const LogDifference &of) {
  const bool is_known = of.knows_peak_before && of.knows_peak_after;
  return {"peak used", peak_words(of.knows_peak_before, kBytes(peak.before), peak.before),
          peak_words(of.knows_peak_after, kBytes(peak.after), peak.after),
          is_known ? change_of(peak, kBytes) : "unknown", is_known ? percent_of(peak) : ""};
}

void add_device_difference(std::vector<std::string> &lines, const LogDifference &of, const DeviceDifference &device,
                           const char *title, std::size_t rows, std::size_t width) {
  lines.push_back("");
  append(lines,
         cli::table_lines(
             {{"DEVICE " + std::to_string(device.ordinal), cli::Align::kLeft}, {"A"}, {"B"}, {"CHANGE"}, {""}},
             {row_of_peak(device.peak, of), row_of("peak reserved", device.reserved_peak, kBytes),
              row_of("allocations", device.allocs, as_count), row_of("refusals", device.refusals, as_count),
              row_of("blocks not freed", device.live_blocks, as_count), row_of("not freed", device.live_bytes, kBytes)},
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
    cells.push_back({change_of(each.peak, kBytes), change_of(each.requested, kBytes), change_of(each.live, kBytes),
                     change_of(each.allocs, as_count),
                     each.is_new    ? "new"
                     : each.is_gone ? "gone"
                                    : "",
                     each.name});
  }
  if (cells.empty()) {
    lines.emplace_back("no caller changed");
    return;
  }
  lines.push_back("");
  append(lines, cli::table_lines({{"AT PEAK"},
                                  {"TOTAL", cli::Align::kRight, cli::Fit::kYields},
                                  {"NOT FREED"},
                                  {"BLOCKS", cli::Align::kRight, cli::Fit::kYields},
                                  {"", cli::Align::kLeft},
                                  {title, cli::Align::kLeft, cli::Fit::kShrinks}},
                                 std::move(cells), width));
  if (changed > rows) {
    lines.push_back("and " + std::to_string(changed - rows) + " more that changed less");
  }
}

std::string named(const std::vector<std::string> &logs) {
  const std::string first = config::printable(logs.front());
  return logs.size() == 1 ? first : "sum of " + std::to_string(logs.size()) + " logs, " + first + " first";
}

}  // namespace

std::vector<std::string> difference_text(const LogDifference &difference, const char *title, std::size_t rows,
                                         std::size_t width) {
  std::vector<std::string> lines = {"A: " + named(difference.before), "B: " + named(difference.after)};
  const auto say_of = [&](std::size_t line, const std::string &end, std::uint64_t dropped) {
    lines[line] += (end.empty() ? "" : ", ") + end;
    if (dropped != 0) {
      lines[line] += ", lacks " + cli::counted(dropped, "record", "records");
    }
  };
  say_of(0, caveat_of_end(difference.before_ended, difference.before_cut_off), difference.dropped.before);
  say_of(1, caveat_of_end(difference.after_ended, difference.after_cut_off), difference.dropped.after);
  if (!difference.failed_allocs.is_same()) {
    lines.push_back("allocations that failed in the driver: " + change_of(difference.failed_allocs, as_count));
  }
  for (const DeviceDifference &each : difference.devices) {
    if (!each.callers.empty() || each.refusals != BothFigures{} || each.reserved_peak != BothFigures{}) {
      add_device_difference(lines, difference, each, title, rows, width);
    }
  }
  if (lines.size() == 2) {
    lines.push_back(nothing_requested(difference.before_ended && difference.after_ended));
  }
  return cli::fitting(lines, width);
}

}  // namespace ration::logs
