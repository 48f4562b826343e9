// `ration check`: holds a log to conditions, for scripts and continuous integration. Layer: cli.
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <system_error>
#include <variant>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "config/values/quotes.h"
#include "logs/check/conditions.h"
#include "logs/history/read_history.h"
#include "logs/output/whole_file.h"
#include "logs/report/caveats.h"

namespace ration::cli {
namespace {

constexpr double kNsInSecond = 1e9;
constexpr double kWhole = 100;  // percent
constexpr const char *kStdout = "-";

// "5%" or "5", whatever the locale. Otherwise one sentence with what is wrong: elsewhere 0.05 is a share, so 5%.
std::variant<double, std::string> parse_percent(const std::string &text) {
  std::string_view number = text;
  if (number.ends_with('%')) {
    number.remove_suffix(number.ends_with(" %") ? 2 : 1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !(value >= 0 && value <= kWhole)) {
    return config::in_quotes(text) + " is no percentage from 0% to 100%; write for example 5%";
  }
  if (number.size() == text.size() && number.find('.') != std::string_view::npos && value > 0 && value <= 1) {
    return config::in_quotes(text) + " may mean " + logs::percent(value) + " or " + logs::percent(value * kWhole) +
           "; write it with the %";
  }
  return value;
}

bool write_junit(const std::string &path, const std::string &text) {
  if (path == kStdout) {
    std::cout << text;
    return true;
  }
  if (logs::is_log(path)) {
    log_line("check: cannot write " + config::in_quotes(path) + ": it is a log, and stays as it is");
    return false;
  }
  errno = 0;
  std::ofstream file(path, std::ios::trunc);
  if (file << text && file.flush()) {
    return true;
  }
  log_error("check: cannot write " + config::in_quotes(path) + ": " +
            (errno != 0 ? std::strerror(errno) : "it takes no output"));
  return false;
}

}  // namespace

int run_verb(const CheckRequest &request) {
  logs::Conditions conditions{{}, request.no_leaks, request.no_failures, {}};
  if (request.max_peak) {
    auto size = config::parse_size(*request.max_peak);
    if (const auto *wrong = std::get_if<std::string>(&size)) {
      return usage_error("check: --max-peak " + config::shown(*request.max_peak) + ": " + *wrong, kUsageError);
    }
    conditions.max_peak = std::get<config::Size>(size);
  }
  if (request.max_fragmentation) {
    const auto most = parse_percent(*request.max_fragmentation);
    if (const auto *wrong = std::get_if<std::string>(&most)) {
      return usage_error("check: --max-fragmentation: " + *wrong, kUsageError);
    }
    conditions.max_fragmentation_percent = std::get<double>(most);
  }
  if (!conditions.max_peak && !conditions.no_leaks && !conditions.no_failures &&
      !conditions.max_fragmentation_percent) {
    return usage_error("check: no condition: --max-peak, --no-leaks, --no-failures or --max-fragmentation",
                       kUsageError);
  }
  logs::History history(logs::History::By::function);
  if (!logs::read_history("check", request.log, history)) {
    return kUnreadable;
  }
  const std::vector<logs::Verdict> verdicts = logs::judge(conditions, history);
  bool holds = true;
  for (const logs::Verdict &each : verdicts) {
    for (const std::string &reason : each.reasons) {
      std::ostream &out = request.junit == kStdout ? std::cerr : std::cout;
      for (const std::string &line : fitting({each.condition + ": " + reason}, output_width())) {
        out << line << '\n';
      }
      holds = false;
    }
  }
  if (holds && !history.has_ended() && !history.was_cut_off()) {  // which no condition has said
    log_line("check: " + config::printable(request.log) + ": " + logs::caveat_of_end(false, false));
  }
  const double seconds = static_cast<double>(history.last_ts_ns()) / kNsInSecond;
  if (request.junit && !write_junit(*request.junit, logs::junit_report(request.log, verdicts, seconds))) {
    return kOurError;
  }
  return !flush_stdout() ? kOurError : holds ? 0 : kDoesNotHold;
}

}  // namespace ration::cli
