// Converts a log of Ration (JSON Lines, schema ration.events/1) to a trace: the requests to one pool of the run.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logs/replay/trace.h"

namespace ration::pool::replay {

// In the shim each context life of a process has its own pool. Numbers as in the log.
struct LogPool {
  std::uint64_t process;  // its pid, 0 where the log does not say
  std::uint64_t device;
  std::uint64_t context;
};

// An absent value matches every pool. Of the matching pools, the one with the highest peak is replayed.
struct LogSelection {
  std::optional<std::uint64_t> process, device, context;
  [[nodiscard]] bool any() const { return process || device || context; }
};

struct LogTrace {
  Trace trace;  // a block's name is the `seq` of its `alloc` record
  LogPool pool;
  std::size_t pools;               // in the log that have any block
  std::vector<std::string> flaws;  // why the trace may not be exact; empty: it is exact
};

// Whether `text` is a log: it begins with a JSON object.
bool is_log(std::string_view text);

// Includes all blocks of device memory, from a pool or from the driver. Repairs what lost records left inconsistent,
// and reports it in `flaws`. Throws TraceError: another schema, no allocation, or no selected pool. `path` is for
// messages only.
LogTrace parse_log(const std::string &path, std::string_view text, const LogSelection &selection);

}  // namespace ration::pool::replay
