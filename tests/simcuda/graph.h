// Graphs as captures create them: nodes with their dependencies; and their executable copies.
// Layer: stream.h. Threads: under Driver::mutex, except the work. Owns: a handle owns its graph until it is destroyed.
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
  std::vector<std::unique_ptr<GraphNode>> nodes;  // each after all its dependencies
  bool capturing = false;                         // cannot be instantiated yet
};

struct GraphExec {
  std::vector<std::function<void()>> works;  // in an order that respects every dependency
  Mark last;                                 // the end of its last launch: launches of one graph never overlap
};

// Adds a node that depends on `after`, and returns it.
GraphNode *add_node(Graph &graph, std::function<void()> work, std::vector<GraphNode *> after);

CUgraph publish(std::shared_ptr<Graph> graph);
// Null: the handle is no graph.
std::shared_ptr<Graph> find_graph(CUgraph handle);

}  // namespace simcuda
