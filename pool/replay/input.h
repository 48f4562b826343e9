// What the program replays: a trace, or one pool of a log, whichever the file turns out to be.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "pool/replay/log_trace.h"
#include "pool/replay/trace.h"

namespace ration::pool::replay {

struct Input {
  Trace trace;
  std::optional<LogPool> pool;     // of a log: the one that is replayed
  std::size_t pools = 0;           // of a log: how many it has
  std::vector<std::string> flaws;  // as in LogTrace
};

// `content` may be xz-compressed. Throws TraceError as parse_trace and parse_log do, and where a pool is selected in
// what is no log. `path` is for messages only.
Input parse_input(const std::string &path, const std::string &content, const LogSelection &selection);

// The same from a file.
Input read_input(const std::string &path, const LogSelection &selection);

}  // namespace ration::pool::replay
