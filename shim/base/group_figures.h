// The figures of one of a process's groups on one device, as that process saw them. Kept in memory that outlives the
// process. Layer: base. Threads: atomics; written in mappings that processes share.
#pragma once

#include <atomic>
#include <cstdint>

namespace ration {

struct GroupFigures {
  std::atomic<std::uint64_t> limit;         // the group's limit; 0: none
  std::atomic<std::uint64_t> most_claimed;  // the largest sum of all members' claims at any request of this process
};
static_assert(sizeof(GroupFigures) == 16);

}  // namespace ration
