// Updates of executable graphs: the same nodes with other parameters. Which other parameters a real driver would refuse
// is not looked at. Layer: graph_exec.h. Threads: any.
#include <algorithm>
#include <unordered_map>

#include "implemented.h"
#include "tests/simcuda/graph_exec.h"

namespace simcuda {
namespace {

CUgraphExecUpdateResultInfo failure(CUgraphExecUpdateResult result, const GraphNode *node = nullptr,
                                    const GraphNode *from = nullptr) {
  return {result, handle_of(node), handle_of(from)};
}

// Nodes are paired by their place in the graph.
CUgraphExecUpdateResultInfo compare(const Graph &own, const Graph &other) {
  if (other.nodes.size() != own.nodes.size()) return failure(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  std::unordered_map<const GraphNode *, const GraphNode *> partner;
  for (std::size_t i = 0; i < own.nodes.size(); ++i) partner[other.nodes[i].get()] = own.nodes[i].get();
  for (const auto &node : other.nodes) {
    const GraphNode &mine = *partner.at(node.get());
    if (node->type != mine.type) return failure(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node.get());
    if (node->after.size() != mine.after.size()) {
      return failure(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node.get());
    }
    for (const GraphNode *before : node->after) {
      if (std::find(mine.after.begin(), mine.after.end(), partner.at(before)) == mine.after.end()) {
        return failure(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node.get(), before);
      }
    }
    if (node->child == nullptr) continue;
    const CUgraphExecUpdateResultInfo inner = compare(*mine.child, *node->child);
    if (inner.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return inner;
  }
  return failure(CU_GRAPH_EXEC_UPDATE_SUCCESS);
}

CUresult update(CUgraphExec handle, CUgraph source, CUgraphExecUpdateResultInfo *info) {
  *info = failure(CU_GRAPH_EXEC_UPDATE_ERROR);
  const Lock lock(driver().mutex);
  const std::shared_ptr<GraphExec> exec = find_exec(handle);
  const std::shared_ptr<Graph> graph = find_graph(source);
  if (exec == nullptr || graph == nullptr || graph->capturing || graph->owned) return CUDA_ERROR_INVALID_VALUE;
  *info = compare(*exec->graph, *graph);
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  std::shared_ptr<Graph> copy = copy_of(*graph, Copy::kForExec);
  auto plan = plan_of(*copy);
  if (!plan) {
    *info = failure(CU_GRAPH_EXEC_UPDATE_ERROR);
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  exec->graph = std::move(copy);
  exec->plan = std::move(*plan);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                           CUgraphExecUpdateResult *updateResult_out) {
  if (hErrorNode_out == nullptr || updateResult_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info = {};
  const CUresult result = update(hGraphExec, hGraph, &info);
  *hErrorNode_out = info.errorNode;
  *updateResult_out = info.result;
  return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo) {
  return resultInfo == nullptr ? CUDA_ERROR_INVALID_VALUE : update(hGraphExec, hGraph, resultInfo);
}

}  // namespace simcuda
