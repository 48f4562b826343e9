// Instantiating graphs, and what an executable graph says of itself. Layer: graph_exec.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/graph_exec.h"

namespace simcuda {
namespace {

constexpr unsigned long long kFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

bool has_exec(const std::shared_ptr<Graph> &graph) {
  for (const auto &[handle, exec] : driver().graph_execs) {
    if (exec->source.lock() == graph) return true;
  }
  return false;
}

// A graph with memory has one executable graph at a time (cuda.h).
CUresult instantiate(CUgraphExec *handle, CUgraph source, unsigned long long flags, CUgraphInstantiateResult *result) {
  *result = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (handle == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<Graph> graph = find_graph(source);
  if (graph == nullptr || graph->capturing || graph->owned) return CUDA_ERROR_INVALID_VALUE;
  if (graph->allocates && has_exec(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  auto exec = std::make_shared<GraphExec>();
  exec->graph = copy_of(*graph, Copy::kForExec);
  exec->source = graph;
  exec->flags = flags;
  auto plan = plan_of(*exec->graph);
  if (!plan) {
    *result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  exec->plan = std::move(*plan);
  *handle = reinterpret_cast<CUgraphExec>(exec.get());
  driver().graph_execs.emplace(exec.get(), std::move(exec));
  *result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace

std::shared_ptr<GraphExec> find_exec(CUgraphExec handle) {
  const auto found = driver().graph_execs.find(handle);
  return found == driver().graph_execs.end() ? nullptr : found->second;
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
  CUgraphInstantiateResult result{};
  return instantiate(phGraphExec, hGraph, flags, &result);
}

// Which of the nodes is to blame is never told. An upload that fails leaves no executable graph.
CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
  if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool upload = (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  const unsigned long long flags = instantiateParams->flags & ~cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
  instantiateParams->hErrNode_out = nullptr;
  CUgraphExec exec = nullptr;
  CUresult error = instantiate(&exec, hGraph, flags, &instantiateParams->result_out);
  if (error == CUDA_SUCCESS && phGraphExec == nullptr) error = CUDA_ERROR_INVALID_VALUE;
  if (error == CUDA_SUCCESS && upload) error = simcuda::cuGraphUpload(exec, instantiateParams->hUploadStream);
  if (error == CUDA_SUCCESS) {
    *phGraphExec = exec;
  } else if (exec != nullptr) {
    simcuda::cuGraphExecDestroy(exec);
    instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  }
  return error;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
  const Lock lock(driver().mutex);
  const std::shared_ptr<GraphExec> exec = find_exec(hGraphExec);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

// Launches that are still queued run all the same.
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  const Lock lock(driver().mutex);
  return driver().graph_execs.erase(hGraphExec) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simcuda
