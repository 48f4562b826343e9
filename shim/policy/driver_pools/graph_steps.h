// The nodes of a graph and of all graphs in it, as one order.
// Layer: policy/driver_pools. Threads: as the graph (the driver's rule: one at a time).
#pragma once

#include <cstdint>
#include <vector>

#include "driver/functions.h"

namespace ration::policy {

// A node. One that holds a graph is two steps, before all nodes of that graph and after them.
struct GraphStep {
  enum class Kind : unsigned char { other, allocates, frees };
  Kind kind = Kind::other;
  int device = 0;  // ordinal
  std::uint64_t requested = 0;
  CUdeviceptr address = 0;
  bool inner = false;  // of a graph in the graph
};

struct GraphSteps {
  std::vector<GraphStep> steps;
  std::vector<std::vector<std::size_t>> before;  // by number of a step: those that it directly depends on
};

// Empty: nothing in it allocates or frees, or the driver does not tell what its nodes are. Throws bad_alloc.
GraphSteps steps_of(CUgraph graph);

}  // namespace ration::policy
