// `ration diff`: shows what changed between two logs of a program, or between the sums of several. Layer: cli.
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
#include "logs/page/page_file.h"
#include "logs/reader/log_names.h"
#include "logs/reader/named_logs.h"
#include "logs/report/caveats.h"

namespace ration::cli {
namespace {

constexpr std::size_t kCallers = 20;  // for each device

struct BothLogs {
  std::vector<logs::History> before, after;
};

// A log without stacks on one side, if the other side's logs have them: the callers of both would not be comparable.
const std::string *log_without_stacks(const BothLogs &logs, const DiffRequest &request) {
  const auto has_stacks = [](const logs::History &each) { return each.has_stacks(); };
  const auto lacking = [](const std::vector<logs::History> &side, const std::vector<std::string> &paths) {
    const auto found = std::find_if(side.begin(), side.end(), [](const auto &each) { return each.lacks_callers(); });
    return found == side.end() ? nullptr : &paths[static_cast<std::size_t>(found - side.begin())];
  };
  const bool some = std::any_of(logs.before.begin(), logs.before.end(), has_stacks) ||
                    std::any_of(logs.after.begin(), logs.after.end(), has_stacks);
  const std::string *before = some ? lacking(logs.before, request.before) : nullptr;
  return !some || before != nullptr ? before : lacking(logs.after, request.after);
}

// nullptr if a log cannot be read, which was logged.
std::unique_ptr<BothLogs> read_both(const DiffRequest &request, logs::History::By by) {
  auto logs = std::make_unique<BothLogs>();
  const auto read = [by](const std::vector<std::string> &paths, std::vector<logs::History> &side) {
    return std::all_of(paths.begin(), paths.end(), [&](const std::string &path) {
      return logs::has_records(logs::read_history("diff", path, side.emplace_back(by)));
    });
  };
  return read(request.before, logs->before) && read(request.after, logs->after) ? std::move(logs) : nullptr;
}

bool can_be_read_again(const DiffRequest &request) {
  const auto is_file = [](const std::string &log) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(logs::present_log(log), ignored);
  };
  return std::all_of(request.before.begin(), request.before.end(), is_file) &&
         std::all_of(request.after.begin(), request.after.end(), is_file);
}

// Sorts the logs into before and after, each once. Returns what is wrong with them; empty if nothing is.
std::string take_sides(DiffRequest &request) {
  if (request.after.empty() && request.before.size() == 2) {
    request.after = {request.before.back()};
    request.before.pop_back();
  }
  if (request.after.empty()) {
    return "it compares two logs, or several: A... -- B...";
  }
  const auto has_stdin = [](const std::vector<std::string> &side) {
    return std::find(side.begin(), side.end(), "-") != side.end();
  };
  if (has_stdin(request.before) && has_stdin(request.after)) {
    return "standard input is one log: it can be before or after";
  }
  request.before = logs::each_log_once("diff", request.before);
  request.after = logs::each_log_once("diff", request.after);
  return {};
}

using Reasons = std::vector<std::string>;

// Why a peak may have grown by more than the given amount; one sentence for each reason.
Reasons reasons_of(const BothLogs &logs, const logs::LogDifference &difference, const logs::Growth &most,
                   const std::string &given) {
  Reasons reasons;
  const auto add_unknown = [&reasons](const std::vector<logs::History> &side, const std::vector<std::string> &paths) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (const std::string caveat = logs::caveat_of_peak(side[i]); !caveat.empty()) {
        reasons.push_back(config::printable(paths[i]) + ": " + caveat);
      }
    }
  };
  add_unknown(logs.before, difference.before.logs);
  add_unknown(logs.after, difference.after.logs);
  for (std::size_t i = 0; i < logs.after.size(); ++i) {
    if (logs.after[i].has_ended() && !logs.after[i].has_ended_cleanly()) {
      reasons.push_back(config::printable(difference.after.logs[i]) +
                        ": its last request was refused: what it would have used is unknown");
    }
  }
  for (const logs::DeviceDifference &each : difference.devices) {
    if (difference.before.has_exact_peak && most.is_exceeded_by(each.peak)) {
      reasons.push_back("device " + std::to_string(each.ordinal) + ": the peak has grown by " +
                        logs::at_least(difference.after.has_exact_peak) +
                        config::show_exact_bytes(each.peak.distance()) + ", more than " + given);
    }
  }
  return reasons;
}

}  // namespace

int run_verb(const DiffRequest &given) {
  const auto grouping = logs::read_grouping(given.by);
  if (const auto *wrong = std::get_if<std::string>(&grouping)) {
    return usage_error("diff: --by " + *wrong, kUsageError);
  }
  if (const std::string problem = given.page ? logs::problem_of_page(*given.page) : ""; !problem.empty()) {
    return usage_error("diff: " + problem, kUsageError);
  }
  std::optional<logs::Growth> most;
  if (given.fail_above) {
    const auto growth = logs::read_growth(*given.fail_above);
    if (const auto *wrong = std::get_if<std::string>(&growth)) {
      return usage_error("diff: --fail-above " + config::shown(*given.fail_above) + ": " + *wrong, kUsageError);
    }
    most = std::get<logs::Growth>(growth);
  }
  DiffRequest request = given;
  if (const std::string wrong = take_sides(request); !wrong.empty()) {
    return usage_error("diff: " + wrong, kUsageError);
  }
  const auto by = std::get<logs::History::By>(grouping) == logs::History::By::caller
                      ? logs::History::By::caller_in_file
                      : std::get<logs::History::By>(grouping);
  std::unique_ptr<BothLogs> logs = read_both(request, by);
  if (const std::string *without = logs ? log_without_stacks(*logs, request) : nullptr) {
    const bool is_readable_again = can_be_read_again(request);
    log_line("diff: " + config::printable(*without) + " was recorded without --stacks, the other with them: " +
             (is_readable_again ? "driver functions are shown in place of callers"
                                : "their callers cannot be compared, because a pipe cannot be read twice"));
    logs = is_readable_again ? read_both(request, logs::History::By::call) : std::move(logs);
  }
  if (!logs) {
    return kUnreadable;
  }
  logs::LogDifference difference = logs::difference_of(logs->before, logs->after);
  difference.before.logs = request.before;
  difference.after.logs = request.after;
  const Reasons reasons = most ? reasons_of(*logs, difference, *most, *request.fail_above) : Reasons();
  const auto verdict = most ? std::optional(reasons) : std::nullopt;
  if (request.json) {
    std::cout << logs::difference_json(difference, request.by, verdict) << '\n';
  } else if (!request.page) {
    for (const std::string &line :
         logs::difference_text(difference, logs::History::title_of(by), kCallers, output_width())) {
      std::cout << line << '\n';
    }
  }
  for (std::size_t i = 0; !request.json && i < reasons.size(); ++i) {
    std::cout << "--fail-above: " << reasons[i] << '\n';
  }
  const int written = request.page ? logs::write_page("diff", *request.page, logs::PageOf::difference,
                                                      logs::difference_json(difference, request.by, verdict))
                                   : 0;
  return written != 0 ? written : !flush_stdout() ? kOurError : !reasons.empty() ? kHasGrown : 0;
}

}  // namespace ration::cli
