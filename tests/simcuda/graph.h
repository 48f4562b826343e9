// Graphs as captures make them: pieces of work and what each comes behind; and their executable copies.
// Layer: stream.h. Threads: under Driver::mutex, but for the work. Owns: a handle owns its graph until it is destroyed.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct GraphNode {
  std::function<void()> work;  // may run any number of times
  std::vector<GraphNode *> after;
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // each behind all that it depends on
  bool capturing = false;                         // not to be instantiated yet
};

struct GraphExec {
  std::vector<std::function<void()>> works;  // in an order that respects every dependency
  Mark last;                                 // the end of its last launch: launches of one graph never overlap
};

// The node that was added, behind `after`.
GraphNode *add_node(Graph &graph, std::function<void()> work, std::vector<GraphNode *> after);

CUgraph publish(std::shared_ptr<Graph> graph);
// Null for a handle that is no graph.
std::shared_ptr<Graph> find_graph(CUgraph handle);

}  // namespace simcuda
