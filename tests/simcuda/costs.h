// The least time of calls: as measured on an H100, or as SIMCUDA_COSTS says for individual calls.
// Layer: settings. Threads: any; built at the first use, then immutable; never freed.
#pragma once
#include <cstdint>
#include <span>

namespace simcuda {

// The time for something of this size. Between two sizes the time grows in proportion; beyond the ends it stays the
// same.
struct SizeCost {
  std::uint64_t bytes;
  double us;
};

struct CallCost {
  double call_us = 0;
  std::span<const SizeCost> by_bytes = {};  // in addition, for each block, mapping or pool part that it concerns
  bool each = false;                        // call_us is for each of those, and for at least one
  double of(std::uint64_t bytes) const;
};

// Null: the cost is less than the simulator's own call takes. `index`: of the entry layer's symbols.
const CallCost *cost_of(unsigned index);

}  // namespace simcuda
