// The conditions against which `ration check` checks a log, and their violations. Layer: logs. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/values/limit_map.h"
#include "logs/history/history.h"

namespace ration::logs {

struct Conditions {
  std::optional<config::LimitMap> max_peak;  // of live blocks, by device; a share refers to the device's memory
  bool no_leaks = false;
  bool no_growth = false;
  bool no_failures = false;
  std::optional<double> max_fragmentation_percent;
};

struct Verdict {
  std::string condition;             // the option, such as --no-leaks
  std::vector<std::string> reasons;  // one line each; empty: the condition is met
};

// For example "5%". Exact to a millionth, so that a value above a limit also looks larger.
std::string percent(double value);

// Returns one verdict for each condition that was requested, in the order of the members of Conditions.
std::vector<Verdict> judge(const Conditions &conditions, const History &history);

struct CheckedLog {
  std::string log;
  std::vector<Verdict> verdicts;
  double seconds = 0;
  std::optional<std::uint64_t> peak_bytes = {};  // the highest of any device; nullopt: unknown
};
// A JUnit report: a test suite for each log, and a test case for each of its verdicts.
std::string junit_report(const std::vector<CheckedLog> &logs);

}  // namespace ration::logs
