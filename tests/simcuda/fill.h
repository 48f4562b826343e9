// The work of a fill, for a stream or for a graph's node. Layer: place.h. Threads: under Driver::mutex.
#pragma once
#include "tests/simcuda/place.h"

namespace simcuda {

struct Fill {
  std::uint64_t to = 0;
  std::size_t pitch = 0;
  unsigned value = 0;
  unsigned element_bytes = 1;  // 1, 2 or 4
  std::size_t width = 0;       // elements
  std::size_t height = 1;
};

// No effect if the fill has no element. Returns INVALID_VALUE if it is not entirely in one piece of memory.
CUresult plan_fill(const Context &context, Reach reach, const Fill &fill, Place *target, Work *work);

}  // namespace simcuda
