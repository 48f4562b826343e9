// What a process saw of one of its groups on one device, in memory that outlives the process. Layer: base.
// Threads: atomics; written in mappings that processes share.
#pragma once

#include <atomic>
#include <cstdint>

namespace ration {

struct GroupFigures {
  std::atomic<std::uint64_t> limit;  // in force; 0: none
  std::atomic<std::uint64_t>
      most_claimed;  // the most that all members held, or were guaranteed, whenever this one took
};
static_assert(sizeof(GroupFigures) == 16);

}  // namespace ration
