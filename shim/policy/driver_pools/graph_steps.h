// The nodes of a graph and of all its child graphs, as steps of one partial order.
// Layer: policy/driver_pools. Threads: as the graph (the driver's rule: one at a time).
#pragma once

#include <cstdint>
#include <vector>

#include "driver/functions.h"

namespace ration::policy {

// One node. A node that holds a child graph becomes two steps: one before all nodes of that graph and one after them.
struct GraphStep {
  enum class Kind : unsigned char { other, allocates, frees };
  Kind kind = Kind::other;
  int device = 0;  // ordinal
  std::uint64_t requested = 0;
  CUdeviceptr address = 0;
  bool inner = false;  // the node is in a child graph
};

struct GraphSteps {
  std::vector<GraphStep> steps;
  std::vector<std::vector<std::size_t>> before;  // for each step, by its index: the steps on which it directly depends
};

// Empty if no node allocates or frees, or if the driver cannot report the nodes. Throws bad_alloc.
GraphSteps steps_of(CUgraph graph);

}  // namespace ration::policy
