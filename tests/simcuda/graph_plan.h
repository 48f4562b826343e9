// The order in which a graph and its child graphs run, and the memory that this takes.
// Layer: graph_memory.h. Threads: under Driver::mutex.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "tests/simcuda/graph_memory.h"

namespace simcuda {

// A node, or the end of a child graph; it follows the steps with the given indices.
struct GraphStep {
  const GraphNode *node = nullptr;
  std::vector<std::size_t> after;
  bool inner = false;  // of a child graph
};

// The steps, each after all steps that it depends on; empty optional if the graph has a cycle.
std::optional<std::vector<GraphStep>> steps_of(const Graph &graph);

struct GraphPlan {
  std::vector<std::function<void()>> works;
  std::vector<GraphNeed> needs;                       // one for each device
  std::vector<std::shared_ptr<GraphBlock>> left;      // allocated and not freed
  std::vector<std::shared_ptr<GraphBlock>> expected;  // freed, but allocated by another graph
};

// Blocks share memory if the free of one is ordered before the allocation of the other. Returns an empty optional for a
// cycle, or for a block that is not freed after its allocation.
std::optional<GraphPlan> plan_of(const Graph &graph);

}  // namespace simcuda
