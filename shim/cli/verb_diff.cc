// `ration diff`: what changed between two logs of a program. Layer: cli.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/diff/log_difference.h"
#include "logs/history/read_history.h"
#include "logs/reader/log_names.h"

namespace ration::cli {
namespace {

constexpr std::size_t kCallers = 20;  // of each device

struct BothLogs {
  explicit BothLogs(logs::History::By by) : before(by), after(by) {}
  logs::History before, after;

  // The one without stacks, where the other has them; nullptr: neither, or nothing was allocated in it.
  const logs::History *lacks_stacks() const {
    return before.has_stacks() == after.has_stacks() ? nullptr
           : before.has_stacks()                     ? with_blocks(after)
                                                     : with_blocks(before);
  }

 private:
  static const logs::History *with_blocks(const logs::History &history) {
    return history.allocs() != 0 ? &history : nullptr;
  }
};

bool asks_for_callers(logs::History::By by) {
  return by == logs::History::By::function_in_file || by == logs::History::By::library;
}

bool is_file(const std::string &log) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(logs::present_log(log), ignored);
}

// Nothing: one cannot be read, which was said.
std::unique_ptr<BothLogs> read_both(const DiffRequest &request, logs::History::By by) {
  auto logs = std::make_unique<BothLogs>(by);
  const bool is_read = logs::read_history("diff", request.before, logs->before) &&
                       logs::read_history("diff", request.after, logs->after);
  return is_read ? std::move(logs) : nullptr;
}

}  // namespace

int run_verb(const DiffRequest &request) {
  const auto grouping = logs::read_grouping(request.by);
  if (const auto *wrong = std::get_if<std::string>(&grouping)) {
    return usage_error("diff: --by " + *wrong, kUsageError);
  }
  std::optional<logs::Growth> most;
  if (request.fail_above) {
    const auto growth = logs::read_growth(*request.fail_above);
    if (const auto *wrong = std::get_if<std::string>(&growth)) {
      return usage_error("diff: --fail-above " + config::shown(*request.fail_above) + ": " + *wrong, kUsageError);
    }
    most = std::get<logs::Growth>(growth);
  }
  const auto by = std::get<logs::History::By>(grouping) == logs::History::By::function
                      ? logs::History::By::function_in_file
                      : std::get<logs::History::By>(grouping);
  std::unique_ptr<BothLogs> logs = read_both(request, by);
  if (logs && asks_for_callers(by) && logs->lacks_stacks() != nullptr) {
    const bool is_readable_again = is_file(request.before) && is_file(request.after);
    log_line("diff: " + config::printable(logs->lacks_stacks() == &logs->before ? request.before : request.after) +
             " was recorded without --stacks, the other with them: " +
             (is_readable_again ? "callers are left out" : "callers differ, as a pipe is not read twice"));
    logs = is_readable_again ? read_both(request, logs::History::By::call) : std::move(logs);
  }
  if (!logs) {
    return kUnreadable;
  }
  const auto &[before, after] = *logs;
  logs::LogDifference difference = logs::difference_of(before, after);
  difference.before = request.before;
  difference.after = request.after;
  const auto exceeds = [&most](const logs::DeviceDifference &each) { return most && most->is_exceeded_by(each.peak); };
  std::vector<std::string> unknown;  // logs, whose growth is none that holds
  for (const auto &[log, history] : {std::pair(&request.before, &before), std::pair(&request.after, &after)}) {
    if (most && !history->knows_peak()) {
      unknown.push_back(*log);
    }
  }
  const bool fails = !unknown.empty() || std::any_of(difference.devices.begin(), difference.devices.end(), exceeds);
  if (request.json) {
    std::cout << logs::difference_json(difference, request.by, most ? std::optional(fails) : std::nullopt) << '\n';
  } else {
    for (const std::string &line : logs::difference_text(difference, kCallers, output_width())) {
      std::cout << line << '\n';
    }
    for (const std::string &log : unknown) {
      std::cout << "--fail-above: " << config::printable(log)
                << " lacks records and has no end: its peak is not known\n";
    }
    for (const logs::DeviceDifference &each : difference.devices) {
      if (exceeds(each)) {
        std::cout << "--fail-above: device " << each.ordinal << ": the peak has grown by "
                  << config::show_exact_bytes(each.peak.distance()) << ", more than " << *request.fail_above << '\n';
      }
    }
  }
  return !flush_stdout() ? kOurError : fails ? kHasGrown : 0;
}

}  // namespace ration::cli
