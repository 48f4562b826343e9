// Input of the program: a trace, or one pool of a log, by the content of the file.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "logs/replay/trace.h"
#include "tests/bench/pool_replay/log_trace.h"

namespace ration::pool::replay {

struct Input {
  Trace trace;
  std::optional<LogPool> pool;     // of a log: the replayed one
  std::size_t pools = 0;           // of a log
  std::vector<std::string> flaws;  // as in LogTrace
};

// `content` may be xz-compressed. Throws TraceError as parse_trace and parse_log do, and where a pool of a plain trace
// is selected. `path` is for messages only.
Input parse_input(const std::string &path, const std::string &content, const LogSelection &selection);

// The same from a file.
Input read_input(const std::string &path, const LogSelection &selection);

}  // namespace ration::pool::replay
