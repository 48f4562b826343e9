// Replays what one process did on one device under a limit: its pools, and beside them the memory that no pool serves.
// Layer: logs. Threads: calls are independent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "logs/replay/replay.h"

namespace ration::pool::replay {

struct DeviceStep {
  enum class Kind : std::uint8_t {
    kAllocate,  // from a pool
    kFree,
    kOther,  // what no pool serves takes `bytes` in all from now on
  };
  Kind kind;
  std::uint32_t pool;  // numbered from 0
  std::uint32_t id;    // of the block, numbered from 0
  std::uint64_t bytes;
  std::uint64_t record;  // of the log
};

struct DeviceTrace {
  std::vector<DeviceStep> steps;
  std::uint32_t pools = 0;
  std::uint32_t ids = 0;
  std::uint64_t peak_bytes = 0;        // most requested and other bytes at once
  std::uint64_t peak_other_bytes = 0;  // most other bytes
};

struct DeviceStop {
  std::uint64_t record;
  std::uint64_t bytes;  // requested, or other bytes beyond those before
  std::uint64_t used;   // requested and other bytes at that moment
};

// With the default settings of mode pool: the first pool takes all that is left once 32 MiB are live in it; others, and
// what no pool serves, get what holds no block. Freed memory is clean at once. A slab is preallocated at the start.
std::optional<DeviceStop> replay_device(const DeviceTrace &trace, std::uint64_t limit, Backing backing);
// The same where each block is the driver's own, as in mode direct.
std::optional<DeviceStop> replay_direct(const DeviceTrace &trace, std::uint64_t limit);

// The smallest limit with which the trace completes, to 0.05 %; that limit has been replayed. On granules it is in
// whole pages. Nothing where no limit is large enough.
std::optional<std::uint64_t> find_device_minimum(const DeviceTrace &trace, Backing backing);

}  // namespace ration::pool::replay
