// A graph's nodes and edges, as the program reads and changes them. No edge has data. Layer: graph_build.h.
// Threads: any.
#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "implemented.h"
#include "tests/simcuda/graph_build.h"

namespace simcuda {
namespace {

using Edge = std::pair<GraphNode *, GraphNode *>;  // from, to

std::vector<Edge> edges_of(const Graph &graph) {
  std::vector<Edge> edges;
  for (const auto &node : graph.nodes) {
    for (GraphNode *before : node->after) edges.emplace_back(before, node.get());
  }
  return edges;
}

// The number that is asked for and exists, and nulls for what does not.
template <class Handle>
void put(CUgraphNode *out, std::size_t asked, std::size_t count, Handle handle) {
  for (std::size_t i = 0; i < asked; ++i) out[i] = i < count ? handle(i) : nullptr;
}

void put_plain(CUgraphEdgeData *data, std::size_t count) {
  if (data != nullptr) std::fill_n(data, count, CUgraphEdgeData{});
}

// Both ends belong to the graph, and no edge is there already or twice.
CUresult new_edges(const Graph &graph, const CUgraphNode *from, const CUgraphNode *to, std::size_t count,
                   std::set<Edge> *edges) {
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode *const first = find_node(from[i]), *const second = find_node(to[i]);
    if (first == nullptr || second == nullptr || first == second) return CUDA_ERROR_INVALID_VALUE;
    if (first->graph != &graph || second->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    const bool known = std::find(second->after.begin(), second->after.end(), first) != second->after.end();
    if (known || !edges->emplace(first, second).second) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult nodes_in(const Graph &graph, const NodeList &list, Frontier *found) {
  if (list.count != 0 && list.nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unordered_set<const GraphNode *> seen;
  for (std::size_t i = 0; i < list.count; ++i) {
    GraphNode *const node = find_node(list.nodes[i]);
    if (node == nullptr || node->graph != &graph || !seen.insert(node).second) return CUDA_ERROR_INVALID_VALUE;
    found->push_back(node);
  }
  return CUDA_SUCCESS;
}

bool plain(const CUgraphEdgeData *data, std::size_t count) {
  return data == nullptr || std::all_of(data, data + count, [](const CUgraphEdgeData &edge) {
           return edge.from_port == 0 && edge.to_port == 0 && edge.type == 0;
         });
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
  const Lock lock(driver().mutex);
  const GraphNode *const node = find_node(hNode);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
  const Lock lock(driver().mutex);
  const GraphNode *const node = find_node(hNode);
  if (node == nullptr || node->child == nullptr || phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = handle_of(node->child.get());
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges) {
  return simcuda::cuGraphGetEdges_v2(hGraph, from, to, nullptr, numEdges);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                            size_t *numEdges) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || numEdges == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (edgeData != nullptr && from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Edge> edges = edges_of(*graph);
  const std::size_t asked = std::exchange(*numEdges, edges.size());
  if (from == nullptr) return CUDA_SUCCESS;
  *numEdges = std::min(asked, edges.size());
  put(from, asked, *numEdges, [&](std::size_t i) { return handle_of(edges[i].first); });
  put(to, asked, *numEdges, [&](std::size_t i) { return handle_of(edges[i].second); });
  put_plain(edgeData, *numEdges);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies) {
  return simcuda::cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                       size_t *numDependencies) {
  const Lock lock(driver().mutex);
  const GraphNode *const node = find_node(hNode);
  if (node == nullptr || numDependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (edgeData != nullptr && dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t asked = std::exchange(*numDependencies, node->after.size());
  if (dependencies == nullptr) return CUDA_SUCCESS;
  *numDependencies = std::min(asked, node->after.size());
  put(dependencies, asked, *numDependencies, [&](std::size_t i) { return handle_of(node->after[i]); });
  put_plain(edgeData, *numDependencies);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t numDependencies) {
  return simcuda::cuGraphAddDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

// A cycle is found when the graph is instantiated.
CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edgeData, size_t numDependencies) {
  if (!plain(edgeData, numDependencies)) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (numDependencies != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::set<Edge> edges;
  const CUresult error = new_edges(*graph, from, to, numDependencies, &edges);
  if (error != CUDA_SUCCESS) return error;
  for (const auto &[first, second] : edges) second->after.push_back(first);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  const Lock lock(driver().mutex);
  GraphNode *const node = find_node(hNode);
  if (node == nullptr || node->graph->capturing || node->graph->allocates) return CUDA_ERROR_INVALID_VALUE;
  Graph &graph = *node->graph;
  for (const auto &other : graph.nodes) std::erase(other->after, node);
  driver().graph_nodes.erase(node);
  if (node->child != nullptr) driver().graphs.erase(node->child.get());
  std::erase_if(graph.nodes, [node](const auto &own) { return own.get() == node; });
  return CUDA_SUCCESS;
}

}  // namespace simcuda
