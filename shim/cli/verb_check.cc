// `ration check`: checks a log against conditions, for scripts and continuous integration. Layer: cli.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <variant>

#include "cli/base/devices_of_logs.h"
#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "config/values/quotes.h"
#include "config/values/size.h"
#include "logs/check/conditions.h"
#include "logs/history/read_history.h"
#include "logs/output/json_or_null.h"
#include "logs/output/output_file.h"
#include "logs/reader/named_logs.h"
#include "logs/report/caveats.h"

namespace ration::cli {
namespace {

constexpr double kNsInSecond = 1e9;
constexpr double kWhole = 100;  // percent
constexpr const char *kStdout = "-";

// Parses "5%", "5" or the share 0.05, whatever the locale. As in a size, a bare 1 could mean two things. On error, one
// sentence.
std::variant<double, std::string> parse_percent(const std::string &text) {
  std::string_view number = text;
  if (number.ends_with('%')) {
    number.remove_suffix(number.ends_with(" %") ? 2 : 1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !(value >= 0 && value <= kWhole)) {
    return config::in_quotes(text) + " is not a percentage from 0% to 100%; write, for example, 5%";
  }
  if (number.size() == text.size() && value == 1 && number.find('.') == std::string_view::npos) {
    return config::in_quotes(text) + " is either 1% or the whole; write 1% or 100%";
  }
  const bool is_share = number.size() == text.size() && number.find('.') != std::string_view::npos && value <= 1;
  return is_share ? value * kWhole : value;
}

bool write_junit(const std::string &path, const std::string &text) {
  logs::OutputFile out(path == kStdout ? std::nullopt : std::optional(path));
  if (out.problem().empty() && out.stream() << text && out.commit()) {
    return true;
  }
  log_error("check: cannot write " + config::in_quotes(path) + ": " + out.problem());
  return false;
}

bool has_held(const logs::CheckedLog &checked) {
  return std::all_of(checked.verdicts.begin(), checked.verdicts.end(),
                     [](const logs::Verdict &each) { return each.reasons.empty(); });
}

// Prints one line for each reason.
void print_reasons(const logs::CheckedLog &checked, bool is_one_of_several, std::ostream &out) {
  for (const logs::Verdict &each : checked.verdicts) {
    for (const std::string &reason : each.reasons) {
      const std::string log = is_one_of_several ? config::printable(checked.log) + ": " : "";
      for (const std::string &line : fitting({log + each.condition + ": " + reason}, output_width())) {
        out << line << '\n';
      }
    }
  }
}

struct LogSums {
  std::uint64_t peaks = 0, left_count = 0, left_bytes = 0, refusals = 0;
  bool knows_peaks = true, are_exact = true, are_whole = true;

  void add(const logs::History &history) {
    for (const logs::History::Device &each : history.devices()) {
      peaks += each.peak.bytes;
      left_count += each.live_count();
      left_bytes += each.live_bytes;
    }
    refusals += history.refusals();
    knows_peaks = knows_peaks && history.knows_peak();
    are_exact = are_exact && history.has_exact_peak();
    are_whole = are_whole && history.is_whole();
  }
  std::string text(std::size_t logs) const {
    return std::to_string(logs) + " logs: sum of peaks (each at its own time) " +
           logs::peak_words(are_exact, config::show_exact_bytes(peaks), peaks) + "; not freed " +
           counted(left_count, "block", "blocks") + ", " + config::show_exact_bytes(left_bytes) + "; " +
           logs::at_least(are_whole) + counted(refusals, "refusal", "refusals") +
           (are_whole ? "" : ", as far as the logs go");
  }
};

nlohmann::ordered_json json_of(const std::vector<logs::CheckedLog> &checked, const LogSums &sums, bool holds) {
  nlohmann::ordered_json document = {{"schema", "ration.check/1"},
                                     {"holds", holds},
                                     {"peak_bytes_sum", logs::or_null(sums.knows_peaks, sums.peaks)},
                                     {"live_blocks", sums.left_count},
                                     {"live_bytes", sums.left_bytes},
                                     {"refusals", sums.refusals},
                                     {"logs", nlohmann::ordered_json::array()}};
  for (const logs::CheckedLog &each : checked) {
    nlohmann::ordered_json conditions = nlohmann::ordered_json::array();
    for (const logs::Verdict &verdict : each.verdicts) {
      conditions.push_back(
          {{"condition", verdict.condition}, {"holds", verdict.reasons.empty()}, {"reasons", verdict.reasons}});
    }
    document["logs"].push_back({{"log", each.log},
                                {"holds", has_held(each)},
                                {"peak_bytes", logs::or_null(each.peak_bytes)},
                                {"conditions", std::move(conditions)}});
  }
  return document;
}

}  // namespace

int run_verb(const CheckRequest &request) {
  logs::Conditions conditions{{}, request.no_leaks, request.no_growth, request.no_failures, {}};
  if (request.max_peak) {
    config::LimitMap &most = conditions.max_peak.emplace();
    const std::string wrong = *request.max_peak == "0" ? "" : config::parse_limit(*request.max_peak, most);
    if (most.empty() && wrong.empty()) {
      most.emplace_back();  // 0: no device memory at all
    }
    if (!wrong.empty()) {
      return usage_error("check: --max-peak " + config::shown(*request.max_peak) + ": " + wrong, kUsageError);
    }
  }
  if (request.max_fragmentation) {
    const auto most = parse_percent(*request.max_fragmentation);
    if (const auto *wrong = std::get_if<std::string>(&most)) {
      return usage_error("check: --max-fragmentation: " + *wrong, kUsageError);
    }
    conditions.max_fragmentation_percent = std::get<double>(most);
  }
  if (!conditions.max_peak && !conditions.no_leaks && !conditions.no_growth && !conditions.no_failures &&
      !conditions.max_fragmentation_percent) {
    return usage_error("check: no condition: --max-peak, --no-leaks, --no-growth, --no-failures or --max-fragmentation",
                       kUsageError);
  }
  const std::vector<std::string> paths = logs::each_log_once("check", request.logs);
  std::vector<logs::CheckedLog> checked;
  LogSums sums;
  DevicesOfLogs devices;
  bool holds = true;
  for (const std::string &path : paths) {
    logs::History history(logs::History::By::caller);
    const logs::ReadTo read = logs::read_history("check", path, history);
    const bool is_empty = read == logs::ReadTo::empty && paths.size() > 1;
    if (!logs::has_records(read) && !is_empty) {
      return kUnreadable;
    }
    sums.add(history);
    devices.add(history);
    checked.push_back(
        {path, logs::judge(conditions, history), static_cast<double>(history.last_ts_ns()) / kNsInSecond});
    if (const logs::History::Device *const busiest = history.busiest(); history.knows_peak()) {
      checked.back().peak_bytes = busiest == nullptr ? 0 : busiest->peak.bytes;
    }
    for (logs::Verdict &each : checked.back().verdicts) {
      each.reasons = is_empty ? std::vector<std::string>{"the log is empty"} : std::move(each.reasons);
    }
    if (!request.json) {
      print_reasons(checked.back(), paths.size() > 1, request.junit == kStdout ? std::cerr : std::cout);
    }
    const bool held = has_held(checked.back());
    holds = holds && held;
    if (held && !history.has_ended() && !history.was_cut_off()) {  // no condition has reported that
      log_line("check: " + config::printable(path) + ": " + logs::caveat_of_end(false, false));
    }
  }
  if (const std::string wrong = conditions.max_peak ? devices.error_in(*conditions.max_peak) : ""; !wrong.empty()) {
    return usage_error("check: --max-peak: " + wrong, kUsageError);
  }
  if (request.json) {  // names of files may hold any bytes
    std::cout << json_of(checked, sums, holds).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (!holds && paths.size() > 1) {
    (request.junit == kStdout ? std::cerr : std::cout) << sums.text(paths.size()) << '\n';
  }
  if (request.junit && !write_junit(*request.junit, logs::junit_report(checked))) {
    return kOurError;
  }
  return !flush_stdout() ? kOurError : holds ? 0 : kDoesNotHold;
}

}  // namespace ration::cli
