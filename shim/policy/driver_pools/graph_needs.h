// What a graph takes of each device at the most while it runs: its blocks, one in the place of another that is freed
// before it as the graph's dependencies order them.
// Layer: policy/driver_pools. Threads: as the graph (the driver's rule: one at a time).
#pragma once

#include <cstdint>
#include <vector>

#include "driver/functions.h"

namespace ration::policy {

struct GraphNeed {
  int device;  // ordinal
  std::uint64_t bytes;
};

// One entry for each device; empty: the graph allocates nothing, or the driver does not tell what its nodes are. Throws
// bad_alloc.
std::vector<GraphNeed> graph_needs(CUgraph graph);

}  // namespace ration::policy
