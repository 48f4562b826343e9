// What calls take: as an H100 was measured, and what SIMCUDA_COSTS says of single ones.
// Layer: settings. Threads: any; built at the first use, then immutable; never freed.
#pragma once
#include <cstdint>
#include <span>

namespace simcuda {

// What something of a size takes. Between two sizes it grows in proportion; beyond the ends it stays the same.
struct SizeCost {
  std::uint64_t bytes;
  double us;
};

struct CallCost {
  double call_us = 0;
  std::span<const SizeCost> by_bytes = {};  // besides, for each block, mapping or part of a pool that it is about
  bool each = false;                        // call_us is for each of those, and for at least one
  double of(std::uint64_t bytes) const;
};

// Null: less than what the simulator's own call takes. `index`: of the entry layer's symbols.
const CallCost *cost_of(unsigned index);

}  // namespace simcuda
