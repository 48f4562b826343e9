// Shared by the calls that add a node to a graph. Layer: graph.h. Threads: any.
#pragma once
#include <cstddef>

#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/graph.h"

namespace simcuda {

// Nodes, given as the program names them.
struct NodeList {
  const CUgraphNode *nodes;
  std::size_t count;
};

// Returns INVALID_VALUE if not all are nodes of the graph, or if a node is listed twice.
CUresult nodes_in(const Graph &graph, const NodeList &list, Frontier *found);
// True if the edges carry no data; edges with data are not simulated.
bool plain(const CUgraphEdgeData *data, std::size_t count);

// `body(graph, dependencies)` adds the node and writes its handle.
template <class Body>
CUresult build(CUgraphNode *out, CUgraph handle, const NodeList &dependencies, Body body) {
  Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Frontier after;
  if (const CUresult error = nodes_in(*graph, dependencies, &after); error != CUDA_SUCCESS) return error;
  return body(*graph, std::move(after));
}

}  // namespace simcuda
