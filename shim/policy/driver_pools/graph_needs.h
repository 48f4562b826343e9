// The most memory that a graph takes of each device while it runs, for its own blocks and those of its child graphs. A
// block may reuse the memory of another block if the graph's dependencies ensure that the other block is freed first.
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
  // A block that still exists after a launch.
  struct Left {
    CUdeviceptr address;
    std::uint64_t requested;
    int device;
  };
  std::vector<GraphNeed> at_once;  // one for each device
  std::vector<Left> left;          // blocks that the graph does not free
  std::vector<CUdeviceptr> frees;  // the blocks that it frees but that were allocated elsewhere
};

// All lists are empty if the graph neither allocates nor frees, or if the driver cannot report its nodes. Throws
// bad_alloc.
GraphNeeds graph_needs(CUgraph graph);

}  // namespace ration::policy
