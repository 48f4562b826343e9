// Executable graphs. Layer: graph_plan.h. Threads: under Driver::mutex. Owns: a copy of the graph, and its blocks until
// the last launch has ended.
#pragma once
#include <memory>

#include "tests/simcuda/graph_plan.h"

namespace simcuda {

struct GraphExec {
  std::shared_ptr<Graph> graph;  // a copy
  std::weak_ptr<Graph> source;
  unsigned long long flags = 0;
  GraphPlan plan;
  Mark last;  // the end of its last launch; launches of one graph never overlap
  bool frees_at_launch() const { return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0; }
};

// Returns null if the handle is not an executable graph.
std::shared_ptr<GraphExec> find_exec(CUgraphExec handle);

}  // namespace simcuda
