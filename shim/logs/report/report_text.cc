#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/report/caveats.h"
#include "logs/report/refusal_text.h"
#include "logs/report/report.h"
#include "logs/report/unknown_functions.h"

namespace ration::logs {
namespace {

using Rows = std::vector<std::vector<std::string>>;

void add_table(Lines &lines, const std::string &title, const char *what, const History::Groups &groups,
               std::size_t most, std::size_t width) {
  const std::vector<History::NamedGroup> sorted = History::largest_first(groups);
  if (sorted.empty()) {
    return;
  }
  const bool has_ages =
      std::any_of(sorted.begin(), sorted.end(), [](const auto &each) { return each.second.oldest_ns != 0; });
  std::vector<cli::Column> columns = {{title}, {"BLOCKS"}};
  if (has_ages) {
    columns.push_back({"OLDEST"});
  }
  columns.push_back({what, cli::Align::kLeft, cli::Fit::kShrinks});
  Rows rows;
  for (std::size_t i = 0; i < std::min(sorted.size(), most); ++i) {
    const auto &[name, group] = sorted[i];
    std::vector<std::string> &row = rows.emplace_back();
    row = {config::show_bytes(group.bytes), std::to_string(group.count)};
    if (has_ages) {
      row.push_back(seconds(group.oldest_ns));
    }
    row.push_back(name);
  }
  lines.push_back("");
  for (std::string &line : cli::table_lines(std::move(columns), std::move(rows), width)) {
    lines.push_back(std::move(line));
  }
  if (sorted.size() > most) {
    lines.push_back("and " + std::to_string(sorted.size() - most) + " more with less");
  }
}

constexpr std::size_t kPlaces = 16;  // shown for one stack

// Innermost frame first. Of a library's calls inside itself, only the outermost, which enters the library, is shown.
void add_stack(Lines &lines, const std::vector<StackFrame> &frames) {
  std::size_t shown = 0;
  for (std::size_t i = 0; i < frames.size() && shown < kPlaces; ++i) {
    std::size_t last = i;
    while (last + 1 < frames.size() && frames[last + 1].library == frames[i].library &&
           frames[i].library != kTheProgram) {
      ++last;
    }
    std::string line = "  " + config::printable(place_of(frames[last]));
    line += ", " + config::printable(frames[last].library);
    if (last != i) {
      line += ", and " + cli::counted(last - i, "call", "calls");
      line += " inside it";
    }
    lines.push_back(std::move(line));
    i = last;
    ++shown;
  }
}

void add_device(Lines &lines, const History &history, std::size_t ordinal, std::size_t rows, std::size_t width) {
  const History::Device &device = history.devices()[ordinal];
  const char *const what = History::title_of(history.by());
  lines.push_back("");
  std::string head = "device " + std::to_string(ordinal);
  if (!device.name.empty()) {
    head += " ";
    head += config::printable(device.name);
  }
  head += ": peak used " +
          peak_words(history.has_exact_peak(), config::show_exact_bytes(device.peak.bytes), device.peak.bytes);
  head += device.limit_asked ? " of the limit of " + config::show_exact_bytes(device.limit)
                             : " of " + config::show_exact_bytes(device.total) + ", no limit";
  if (device.later_limit != 0) {
    head += " at the start, later " + config::show_exact_bytes(device.later_limit);
  } else if (device.limit_asked && device.peak.bytes > device.limit) {
    head += " at the start, and more later";
  }
  if (device.group_limit != 0) {
    head += device.limit_asked ? "" : " of its own";
    head += ", in a group of " + config::show_exact_bytes(device.group_limit);
  }
  lines.push_back(head);
  std::string when;
  if (device.peak.seq != 0) {
    when += "at " + seconds(device.peak.ts_ns) + ", record " + std::to_string(device.peak.seq);
  }
  if (device.reserved_peak.bytes != 0) {
    when += (when.empty() ? "peak reserved " : "; peak reserved ") +
            peak_words(history.has_exact_peak(), config::show_exact_bytes(device.reserved_peak.bytes),
                       device.reserved_peak.bytes);
    when += device.reserved_peak.seq != 0 ? " at " + seconds(device.reserved_peak.ts_ns) : "";
  }
  if (!when.empty()) {
    lines.push_back("  " + when);
  }
  std::string counts =
      "  " + at_least(device.has_all_counts) + cli::counted(device.allocs, "allocation, ", "allocations, ");
  counts += cli::counted(device.frees, "free", "frees");
  if (device.waits != 0) {
    counts += "; " + cli::counted(device.waits, "wait", "waits") + " of ";
    counts += seconds(device.waited_ns) + " in all";
  }
  lines.push_back(std::move(counts));
  add_table(lines, "AT PEAK", what, device.at_peak, rows, width);
  add_table(lines, "TOTAL", what, device.in_all, rows, width);
  add_table(lines, "NOT FREED", what, device.live, rows, width);
  add_table(lines, "HOST MEMORY NOT FREED", what, device.host.live, rows, width);
}

}  // namespace

Lines report_text(const Report &report, std::size_t rows, std::size_t width) {
  const History &history = report.history;
  const std::string end = caveat_of_end(history.has_ended(), history.was_cut_off());
  Lines lines = {config::printable(report.log) + ": " + config::printable(history.program()) + " (pid " +
                 std::to_string(history.pid()) + "), " + seconds(history.last_ts_ns()) + (end.empty() ? "" : ", ") +
                 end};
  if (std::string losses = caveat_of_losses(history); !losses.empty()) {
    lines.push_back(std::move(losses));
  }
  const std::size_t head = lines.size();
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    add_refusals(lines, history, i);
  }
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    add_growth(lines, history, i);
  }
  for (std::size_t i = 0; i < history.devices().size(); ++i) {
    const History::Device &device = history.devices()[i];
    if (!device.in_all.empty() || !device.refusals.empty() || device.reserved_peak.bytes != 0) {
      add_device(lines, history, i, rows, width);
    }
  }
  if (lines.size() == head) {
    lines.push_back(nothing_requested(history.has_ended()));
  }
  if (std::vector<std::string> unknown = unknown_functions_text(history); !unknown.empty()) {
    lines.emplace_back();
    std::move(unknown.begin(), unknown.end(), std::back_inserter(lines));
  }
  const Lines names = caveats_of_names(history);  // by now, all names that are shown have been requested
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(head), names.begin(), names.end());
  return cli::fitting(lines, width);
}

std::vector<Leak> leaks_of(const History &history, std::size_t device) {
  const History::Device &where = history.devices()[device];
  std::vector<Leak> leaks;
  const auto add = [&](const auto &stacks, const History::Groups &others, bool is_host) {
    for (const auto &[stack, group] : stacks) {
      if (group.count != 0) {
        leaks.push_back({group, stack, history.stacks().caller(stack), is_host});
      }
    }
    for (const auto &[name, group] : History::largest_first(others)) {
      leaks.push_back({group, 0, name, is_host});
    }
  };
  add(where.live_stacks, where.live_others, false);
  add(where.host.live_stacks, where.host.live_others, true);
  std::stable_sort(leaks.begin(), leaks.end(),
                   [](const Leak &a, const Leak &b) { return a.group.bytes > b.group.bytes; });
  return leaks;
}

Lines leaks_text(const Report &report, std::size_t width) {
  Lines lines;
  for (std::size_t i = 0; i < report.history.devices().size(); ++i) {
    const History::Device &device = report.history.devices()[i];
    const std::string head = config::printable(report.log) + ": device " + std::to_string(i) + ": ";
    const char *const what = History::title_of(report.history.by());
    const std::string as_far = as_far_as_it_goes(report.history.has_ended());
    if (device.live_count() != 0) {
      lines.push_back(head + cli::counted(device.live_count(), "block", "blocks") + " not freed, " +
                      config::show_exact_bytes(device.live_bytes) + as_far);
      add_table(lines, "NOT FREED", what, device.live, cli::kUnlimitedWidth, width);
    }
    if (device.host.count != 0) {
      lines.push_back(head + cli::counted(device.host.count, "block", "blocks") + " of pinned host memory not freed, " +
                      config::show_exact_bytes(device.host.bytes) + ", none of it on the device" + as_far);
      add_table(lines, "HOST MEMORY NOT FREED", what, device.host.live, cli::kUnlimitedWidth, width);
    }
    for (const Leak &leak : leaks_of(report.history, i)) {
      if (leak.stack != 0) {
        lines.push_back("");
        lines.push_back(config::show_bytes(leak.group.bytes) + (leak.is_host ? " of host memory" : "") + " in " +
                        cli::counted(leak.group.count, "block", "blocks") + " by " + config::printable(leak.name) +
                        ", called through");
        add_stack(lines, report.history.stacks().frames(leak.stack));
      }
    }
  }
  if (lines.empty()) {
    lines.push_back(config::printable(report.log) + ": every block was freed" +
                    as_far_as_it_goes(report.history.has_ended()));
  }
  Lines caveats = caveats_of_names(report.history);
  caveats.insert(caveats.begin(), caveat_of_losses(report.history));
  caveats.insert(caveats.begin(), caveat_of_end(report.history.has_ended(), report.history.was_cut_off()));
  for (auto caveat = caveats.rbegin(); caveat != caveats.rend(); ++caveat) {
    if (!caveat->empty()) {
      lines.insert(lines.begin(), config::printable(report.log) + ": " + *caveat);
    }
  }
  return cli::fitting(lines, width);
}

}  // namespace ration::logs
