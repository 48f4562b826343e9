#include "cli/usage/top_title.h"

#include <algorithm>
#include <set>

#include "cli/base/text_table.h"
#include "cli/usage/usage_tables.h"
#include "config/values/quotes.h"

namespace ration::cli {

namespace {

// The size of all devices together; 0 if that of one is unknown.
std::uint64_t size_of_devices(const Usage &usage) {
  std::uint64_t size = 0;
  for (const DeviceRow &device : usage.devices) {
    if (device.size == 0) {
      return 0;
    }
    size += device.size;
  }
  return size;
}

std::string shown_filter(const TopState &state) {
  return state.is_unicode ? config::printable(state.filter) : config::ascii_only(state.filter);
}

std::string longest_of(const std::vector<std::string> &texts, std::size_t width) {
  const auto fits = [width](const std::string &each) { return width_of(each) <= width; };
  const auto found = std::find_if(texts.begin(), texts.end(), fits);
  return found == texts.end() ? texts.back() : *found;
}

}  // namespace

TopTotals totals_of_rows(const Usage &usage) {
  TopTotals totals;
  std::set<std::uint64_t> processes;
  for (const ProcessRow &row : usage.processes) {
    if (row.is_others) {
      continue;
    }
    if (!row.is_stand_in) {
      processes.insert(row.identity);
    }
    totals.used += row.use.used;
    totals.reserved += row.use.reserved;
  }
  totals.processes = processes.size();
  return totals;
}

std::string title_of(const TopTotals &shown, const Usage &usage, const TopState &state, std::size_t width) {
  const std::string paused = state.paused ? ", paused" : "";
  const std::string gpus = counted(usage.devices.size(), "GPU", "GPUs") + paused;
  const std::string used = short_bytes(shown.used), reserved = short_bytes(shown.reserved);
  const TopTotals all = totals_of_rows(usage);
  if (state.filter.empty()) {
    const std::uint64_t size = size_of_devices(usage);
    const std::string what = counted(all.processes, "process on ", "processes on ") + gpus;
    const std::string figures = ", " + used + " used, " + reserved + " reserved";
    const std::string of = size == 0 ? "" : std::string(" of ") + short_bytes(size);
    return longest_of({"ration top: " + what + figures + of, what + figures + of, what + figures, what,
                       counted(all.processes, "process", "processes")},
                      width);
  }
  const std::string what = std::to_string(shown.processes) + " of " +
                           counted(all.processes, "process with \"", "processes with \"") + shown_filter(state) + "\"" +
                           paused;
  const std::string of_all = ", " + used + " of " + short_bytes(all.used) + " used, " + reserved + " of " +
                             short_bytes(all.reserved) + " reserved";
  return longest_of(
      {"ration top: " + what + of_all, what + of_all, what + ", " + used + " used, " + reserved + " reserved", what},
      width);
}

std::string key_line(const TopState &state, const std::string &shown_help, std::size_t width) {
  if (state.question) {
    return line_of(*state.question);
  }
  if (!state.message.empty()) {
    return state.message;
  }
  if (state.is_typing) {
    return std::string("/") + shown_filter(state) + "_  Enter keeps  Esc clears  Ctrl-U empties";
  }
  if (state.shows_help) {
    return shown_help.empty() ? "any key: back  q quit"
                              : "q quit  up, down: lines " + shown_help + "  other keys: back";
  }
  std::string keys =
      std::string("q quit  ? help  / filter  L limit  x signal  space ") + (state.paused ? "goes on" : "pauses");
  std::string separator = "  sort by: ";
  for (const SortChoice &each : kSortChoices) {
    const std::string choice = separator + each.key + " " + each.title;
    if (width_of(keys) + width_of(choice) > width) {
      break;
    }
    keys += choice;
    separator = "  ";
  }
  return keys;
}

}  // namespace ration::cli
