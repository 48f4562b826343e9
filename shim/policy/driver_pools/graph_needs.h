// What a graph takes of each device at the most while it runs: its blocks and those of the graphs in it, one in the
// place of another that is freed before it as the dependencies order them.
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

struct GraphNeeds {
  // A block that is still there after a launch.
  struct Left {
    CUdeviceptr address;
    std::uint64_t requested;
    int device;
  };
  std::vector<GraphNeed> at_once;  // one for each device
  std::vector<Left> left;          // blocks that the graph does not free
  std::vector<CUdeviceptr> frees;  // blocks of other graphs
};

// All empty: the graph neither allocates nor frees, or the driver does not tell what its nodes are. Throws bad_alloc.
GraphNeeds graph_needs(CUgraph graph);

}  // namespace ration::policy
