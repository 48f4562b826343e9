// Graphs: nodes with their dependencies, as captures and the program create them. Their executable copies are in
// graph_exec.h. Layer: stream.h. Threads: under Driver::mutex, except the work. Owns: a handle owns its graph until it
// is destroyed; a child graph node owns its graph.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct GraphBlock;  // graph_memory.h

struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::function<void()> work = {};  // may run any number of times; null: nothing to do
  std::vector<GraphNode *> after = {};
  std::shared_ptr<GraphBlock> block = {};  // that the node allocates or frees
  std::shared_ptr<Graph> child = {};       // of a child graph node
  bool captured = false;
  Graph *graph = nullptr;
};

struct Graph {
  std::uint64_t id = 0;
  std::vector<std::unique_ptr<GraphNode>> nodes;
  bool capturing = false;  // cannot be instantiated yet
  bool allocates = false;  // this graph or a child graph has a node that allocates or frees
  bool owned = false;      // by a child graph node

  Graph();
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
};

// Adds a node, which gets a handle, and returns it.
GraphNode *add_node(Graph &graph, GraphNode node);
// Returns null if the handle is not a node of any graph that the program can reach.
GraphNode *find_node(CUgraphNode handle);

inline CUgraph handle_of(const Graph *graph) {
  return reinterpret_cast<CUgraph>(const_cast<Graph *>(graph));
}
inline CUgraphNode handle_of(const GraphNode *node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode *>(node));
}

CUgraph publish(std::shared_ptr<Graph> graph);
// Returns null if the handle is not a graph.
std::shared_ptr<Graph> find_graph(CUgraph handle);

// A copy of the nodes and of all child graphs. In a copy for the program, each node and child graph has a handle; the
// caller publishes the copy itself. In a copy for an executable graph, none has a handle.
enum class Copy : unsigned char { kForProgram, kForExec };
std::shared_ptr<Graph> copy_of(const Graph &graph, Copy purpose);

}  // namespace simcuda
