// What `ration check` holds a log to, and what of it did not hold. Layer: logs. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/values/size.h"
#include "logs/history/history.h"

namespace ration::logs {

struct Conditions {
  std::optional<config::Size> max_peak;  // of live blocks, on each device; a share is one of the device
  bool no_leaks = false;
  bool no_growth = false;
  bool no_failures = false;
  std::optional<double> max_fragmentation_percent;
};

struct Verdict {
  std::string condition;             // as an option: --no-leaks
  std::vector<std::string> reasons;  // a line each; empty: it held
};

// "5%", to a part of a million, so that what is more looks like more.
std::string percent(double value);

// One for each condition that was asked for, in the order of the struct.
std::vector<Verdict> judge(const Conditions &conditions, const History &history);

struct CheckedLog {
  std::string log;
  std::vector<Verdict> verdicts;
  double seconds = 0;
};
// A JUnit report: a suite for each log, a case for each of its verdicts.
std::string junit_report(const std::vector<CheckedLog> &logs);

}  // namespace ration::logs
