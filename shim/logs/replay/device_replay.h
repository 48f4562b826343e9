// Replays the requests of one process on one device under a limit, both in its pools and for memory outside pools.
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
    kOther,  // from now on, memory outside pools takes `bytes` in total
  };
  Kind kind;
  std::uint32_t pool;  // numbered from 0
  std::uint32_t id;    // the id of the block, numbered from 0
  std::uint64_t bytes;
  std::uint64_t record;  // the number of the record in the log
};

struct DeviceTrace {
  std::vector<DeviceStep> steps;
  std::uint32_t pools = 0;
  std::uint32_t ids = 0;
  std::uint64_t total_bytes = 0;       // the device's memory; 0: unknown
  std::uint64_t peak_bytes = 0;        // the maximum of the sum of requested and other bytes
  std::uint64_t peak_other_bytes = 0;  // the maximum of other bytes
};

struct DeviceStop {
  std::uint64_t record;
  std::uint64_t bytes;  // the size of the request, or the increase of other bytes
  std::uint64_t used;   // requested and other bytes at that time; in mode direct, charged bytes
};

// Replays with the default settings of mode pool (replayed_device.h). Where a block is placed depends on when freed
// memory is clean. So there are two replays: as on a device without work, and with memory clean at once. Both must fit.
std::optional<DeviceStop> replay_device(const DeviceTrace &trace, std::uint64_t limit, Backing backing);
// Replays as in mode direct, where each block is a separate allocation by the driver and is charged in whole units.
std::optional<DeviceStop> replay_direct(const DeviceTrace &trace, std::uint64_t limit);

// The smallest limit with which the trace completes, to within 0.05 %; a replay with exactly that limit has completed.
// With granules, the limit is a whole number of pages. With several pools, kSpareOfPools is added to the limit, because
// it is not known exactly when one pool gives granules to another. nullopt: no limit is large enough.
constexpr std::uint64_t kSpareOfPools = std::uint64_t{16} << 20;
std::optional<std::uint64_t> find_device_minimum(const DeviceTrace &trace, Backing backing);
// The same for mode direct, exact to the byte.
std::uint64_t find_direct_minimum(const DeviceTrace &trace);

}  // namespace ration::pool::replay
