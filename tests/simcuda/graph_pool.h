// A device's physical memory for graphs. All graphs of the device share it, because their launches take turns. Blocks
// that outlive their launch are held in addition. Layer: stream.h. Threads: under Driver::mutex.
#pragma once
#include <cstdint>
#include <vector>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct GraphPool {
  // Queued work and the bytes that it needs in addition to `held`.
  struct Use {
    Mark end;
    std::uint64_t bytes = 0;
  };
  std::uint64_t reserved = 0;  // all of it also counts as used
  std::uint64_t reserved_high = 0, used_high = 0;
  std::uint64_t held = 0;     // held by blocks that a launch has left allocated
  std::vector<Use> launches;  // one after the other
  std::vector<Use> frees;     // of such blocks
};

}  // namespace simcuda
