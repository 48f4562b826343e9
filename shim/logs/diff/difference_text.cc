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

// Counts of a side that is not whole are lower bounds, so the change is not known.
std::vector<std::string> row_of(const char *what, const BothFigures &figures, Show show, const LogDifference &of) {
  const bool is_known = of.before.is_whole && of.after.is_whole;
  return {what, at_least(of.before.is_whole) + show(figures.before), at_least(of.after.is_whole) + show(figures.after),
          is_known ? change_of(figures, show) : "unknown", is_known ? percent_of(figures) : ""};
}

// What was not freed is known if the log has its end.
std::vector<std::string> row_of_live(const char *what, const BothFigures &figures, Show show, const LogDifference &of) {
  const bool is_known = of.before.has_ended && of.after.has_ended;
  const auto shown = [show](const LogDifference::Side &side, std::uint64_t value) {
    return side.has_ended ? show(value) : std::string("unknown");
  };
  return {what, shown(of.before, figures.before), shown(of.after, figures.after),
          is_known ? change_of(figures, show) : "unknown", is_known ? percent_of(figures) : ""};
}

bool has_changed(const CallerDifference &caller) {
  return caller.largest() != 0 || !caller.allocs.is_same();
}

void append(std::vector<std::string> &lines, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

// The sum of several logs' peaks was not necessarily held at one time.
std::vector<std::string> row_of_peak(const char *what, const BothFigures &peak, const LogDifference &of) {
  const bool is_sum = of.before.logs.size() > 1 || of.after.logs.size() > 1;
  const bool is_known = of.before.has_exact_peak && of.after.has_exact_peak;
  return {(is_sum ? "sum of peaks " : "peak ") + std::string(what),
          peak_words(of.before.has_exact_peak, kBytes(peak.before), peak.before),
          peak_words(of.after.has_exact_peak, kBytes(peak.after), peak.after),
          is_known ? change_of(peak, kBytes) : "unknown", is_known ? percent_of(peak) : ""};
}

void add_device_difference(std::vector<std::string> &lines, const LogDifference &of, const DeviceDifference &device,
                           const char *title, std::size_t rows, std::size_t width) {
  lines.push_back("");
  append(lines,
         cli::table_lines(
             {{"DEVICE " + std::to_string(device.ordinal), cli::Align::kLeft}, {"A"}, {"B"}, {"CHANGE"}, {""}},
             {row_of_peak("used", device.peak, of), row_of_peak("reserved", device.reserved_peak, of),
              row_of("allocations", device.allocs, as_count, of), row_of("refusals", device.refusals, as_count, of),
              row_of_live("blocks not freed", device.live_blocks, as_count, of),
              row_of_live("not freed", device.live_bytes, kBytes, of)},
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
                     change_of(each.allocs, as_count), each.is_before && each.is_after ? "" : of.occurrence_of(each),
                     each.name});
  }
  if (cells.empty()) {
    lines.push_back("no caller changed" + as_far_as_it_goes(of.before.is_whole && of.after.is_whole));
    return;
  }
  lines.push_back("");
  if (!of.before.is_whole || !of.after.is_whole) {
    lines.emplace_back("what callers did, as far as the logs go:");
  }
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
  std::vector<std::string> lines = {"A: " + named(difference.before.logs), "B: " + named(difference.after.logs)};
  const auto say_of = [&](std::size_t line, const std::string &end, std::uint64_t dropped) {
    lines[line] += (end.empty() ? "" : ", ") + end;
    if (dropped != 0) {
      lines[line] += ", lacks " + cli::counted(dropped, "record", "records");
    }
  };
  say_of(0, caveat_of_end(difference.before.has_ended, difference.before.was_cut_off), difference.dropped.before);
  say_of(1, caveat_of_end(difference.after.has_ended, difference.after.was_cut_off), difference.dropped.after);
  if (!difference.failed_allocs.is_same() && difference.before.has_ended && difference.after.has_ended) {
    lines.push_back("allocations that failed in the driver: " + change_of(difference.failed_allocs, as_count));
  }
  for (const DeviceDifference &each : difference.devices) {
    if (!each.callers.empty() || each.refusals != BothFigures{} || each.reserved_peak != BothFigures{}) {
      add_device_difference(lines, difference, each, title, rows, width);
    }
  }
  if (lines.size() == 2) {
    lines.push_back(nothing_requested(difference.before.has_ended && difference.after.has_ended));
  }
  return cli::fitting(lines, width);
}

}  // namespace ration::logs
