#include "tests/simcuda/graph.h"

#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

constexpr unsigned long long kInstantiateFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

// A captured launch becomes the nodes of the graph, in sequence.
CUresult capture_launch(Stream &stream, const GraphExec &exec) {
  for (const auto &work : exec.works) {
    stream.frontier = {add_node(*stream.capture->graph, work, stream.frontier)};
  }
  return CUDA_SUCCESS;
}

}  // namespace

GraphNode *add_node(Graph &graph, std::function<void()> work, std::vector<GraphNode *> after) {
  graph.nodes.push_back(std::make_unique<GraphNode>(GraphNode{std::move(work), std::move(after)}));
  return graph.nodes.back().get();
}

CUgraph publish(std::shared_ptr<Graph> graph) {
  const auto handle = reinterpret_cast<CUgraph>(graph.get());
  driver().graphs.emplace(handle, std::move(graph));
  return handle;
}

std::shared_ptr<Graph> find_graph(CUgraph handle) {
  const auto found = driver().graphs.find(handle);
  return found == driver().graphs.end() ? nullptr : found->second;
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
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  driver().graphs.erase(hGraph);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || numNodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes != nullptr) {
    const std::size_t count = std::min(*numNodes, graph->nodes.size());
    for (std::size_t i = 0; i < *numNodes; ++i) {
      nodes[i] = i < count ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get()) : nullptr;
    }
    *numNodes = count;
  } else {
    *numNodes = graph->nodes.size();
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                            size_t bufferSize) {
  return simcuda::cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                               size_t bufferSize) {
  if (phErrorNode != nullptr) *phErrorNode = nullptr;
  if (logBuffer != nullptr && bufferSize != 0) *logBuffer = '\0';
  return simcuda::cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
  if (phGraphExec == nullptr || (flags & ~kInstantiateFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  const std::shared_ptr<Graph> graph = find_graph(hGraph);
  if (graph == nullptr || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<GraphExec>();
  for (const auto &node : graph->nodes) exec->works.push_back(node->work);
  *phGraphExec = reinterpret_cast<CUgraphExec>(exec.get());
  driver().graph_execs.emplace(exec.get(), std::move(exec));
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  const auto found = driver().graph_execs.find(hGraphExec);
  if (found == driver().graph_execs.end()) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<GraphExec> exec = found->second;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) return capture_launch(*stream, *exec);
  std::vector<Mark> after;
  if (!exec->last.reached()) after.push_back(exec->last);
  exec->last = submit(
      lock, stream, Pace::kInstant, [] {}, std::move(after));
  for (const auto &work : exec->works) exec->last = submit(lock, stream, Pace::kDelayed, work);
  return CUDA_SUCCESS;
}

// Launches that are still queued run all the same.
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  const Lock lock(driver().mutex);
  return driver().graph_execs.erase(hGraphExec) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simcuda
