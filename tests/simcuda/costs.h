// The minimum duration of calls, as measured on an H100, or as SIMCUDA_COSTS sets it for individual calls.
// Layer: settings. Threads: any; built at the first use, then immutable; never freed.
#pragma once
#include <cstdint>
#include <span>

namespace simcuda {

// The time for something of this size. Between two sizes the time is interpolated; beyond the ends it is constant.
struct SizeCost {
  std::uint64_t bytes;
  double us;
};

struct CallCost {
  double call_us = 0;
  std::span<const SizeCost> by_bytes = {};  // in addition, for each block, mapping or pool part of the call
  bool each = false;                        // call_us applies to each of these, and at least once
  double of(std::uint64_t bytes) const;
};

// Null if the cost is less than the simulator's own call takes. `index` is the index of the entry layer's symbol.
const CallCost *cost_of(unsigned index);

}  // namespace simcuda
