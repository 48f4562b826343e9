// A log of ours (JSON Lines, schema ration.events/1) as a trace: what one pool of the run was asked for.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/replay/trace.h"

namespace ration::pool::replay {

// In the shim each context life of a process has a pool of its own; numbers as in the log.
struct LogPool {
  std::uint64_t process;  // its pid, 0 where the log does not say
  std::uint64_t device;
  std::uint64_t context;
};

// What is left open matches every pool. Of those that match, the one with the most bytes live at once is replayed.
struct LogSelection {
  std::optional<std::uint64_t> process, device, context;
  [[nodiscard]] bool any() const { return process || device || context; }
};

struct LogTrace {
  Trace trace;  // a block's name is the `seq` of its `alloc` record
  LogPool pool;
  std::size_t pools;               // of the whole log that hold any block
  std::vector<std::string> flaws;  // why the trace may not be exactly what happened; none: it is
};

// Whether `text` is a log and no trace: whether it begins with an object.
bool is_log(std::string_view text);

// Blocks of device memory count, whether a pool or the driver served them; whatever was lost on the way is made good as
// well as the rest allows, and named in `flaws`. Throws TraceError: another schema, no allocation in it, or none in a
// pool that is selected. `path` is for messages only.
LogTrace parse_log(const std::string &path, std::string_view text, const LogSelection &selection);

}  // namespace ration::pool::replay
