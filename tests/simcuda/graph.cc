#include "tests/simcuda/graph.h"

#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

GraphNode *append(Graph &graph, GraphNode node) {
  const bool memory = node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  graph.allocates |= memory || (node.child != nullptr && node.child->allocates);
  node.graph = &graph;
  return graph.nodes.emplace_back(std::make_unique<GraphNode>(std::move(node))).get();
}

}  // namespace

Graph::Graph() : id(driver().next_id++) {}

Graph::~Graph() {
  for (const auto &node : nodes) {
    driver().graph_nodes.erase(node.get());
    if (node->child != nullptr) driver().graphs.erase(node->child.get());
  }
}

GraphNode *add_node(Graph &graph, GraphNode node) {
  GraphNode *const added = append(graph, std::move(node));
  driver().graph_nodes.insert(added);
  return added;
}

GraphNode *find_node(CUgraphNode handle) {
  auto *const node = reinterpret_cast<GraphNode *>(handle);
  return driver().graph_nodes.count(node) == 0 ? nullptr : node;
}

CUgraph publish(std::shared_ptr<Graph> graph) {
  const CUgraph handle = handle_of(graph.get());
  driver().graphs.emplace(handle, std::move(graph));
  return handle;
}

std::shared_ptr<Graph> find_graph(CUgraph handle) {
  const auto found = driver().graphs.find(handle);
  return found == driver().graphs.end() ? nullptr : found->second;
}

std::shared_ptr<Graph> copy_of(const Graph &graph, Copy purpose) {
  auto made = std::make_shared<Graph>();
  std::unordered_map<const GraphNode *, GraphNode *> copies;
  for (const auto &node : graph.nodes) {
    GraphNode copy{.type = node->type, .work = node->work, .block = node->block};
    if (node->child != nullptr) {
      copy.child = copy_of(*node->child, purpose);
      copy.child->owned = true;
      if (purpose == Copy::kForProgram) publish(copy.child);
    }
    copies[node.get()] =
        purpose == Copy::kForProgram ? add_node(*made, std::move(copy)) : append(*made, std::move(copy));
  }
  for (const auto &node : graph.nodes) {
    for (const GraphNode *before : node->after) copies[node.get()]->after.push_back(copies.at(before));
  }
  return made;
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
  if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  *phGraph = publish(std::make_shared<Graph>());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || graph->capturing || graph->owned) return CUDA_ERROR_INVALID_VALUE;
  driver().graphs.erase(hGraph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(originalGraph);
  if (graph == nullptr || phGraphClone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (graph->allocates) return CUDA_ERROR_NOT_SUPPORTED;
  *phGraphClone = publish(copy_of(*graph, Copy::kForProgram));
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || numNodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes != nullptr) {
    const std::size_t count = std::min(*numNodes, graph->nodes.size());
    for (std::size_t i = 0; i < *numNodes; ++i) {
      nodes[i] = i < count ? handle_of(graph->nodes[i].get()) : nullptr;
    }
    *numNodes = count;
  } else {
    *numNodes = graph->nodes.size();
  }
  return CUDA_SUCCESS;
}

}  // namespace simcuda
