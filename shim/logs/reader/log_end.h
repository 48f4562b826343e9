// What the last record of a log (shim/events/README.md) says of the functions that the program asked the driver for.
// Layer: logs. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "logs/reader/log_reader.h"

namespace ration::logs {

struct LogEnd {
  std::string program;
  std::int64_t pid = 0;
  int driver = 0;                      // as cuDriverGetVersion returns it; 0: unknown
  std::string version;                 // of Ration
  std::uint64_t unknown_names = 0;     // functions that the driver has and Ration does not know
  std::vector<std::string> unknown;    // the first of them
  std::uint64_t unknown_versions = 0;  // requests for a function that Ration knows, in a version that it does not
  std::vector<std::string> newer;      // the first of them, as NAME@VERSION
};

struct LogProblem {
  int status;  // to exit with
  std::string line;
};

// Reads a whole log to its end.
std::variant<LogEnd, LogProblem> read_log_end(LogReader &log);

}  // namespace ration::logs
