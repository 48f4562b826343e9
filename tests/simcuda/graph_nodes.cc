// Adding nodes to a graph, other than those that allocate and free. Layer: graph_build.h. Threads: any.
#include <algorithm>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/copy_side.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/fill.h"
#include "tests/simcuda/graph_build.h"

namespace simcuda {
namespace {

// The context for a node's work; without a handle the current one.
CUresult context_for(CUcontext handle, Context **context) {
  *context = handle == nullptr ? current_or_null() : find_context(handle);
  return *context == nullptr || !(*context)->alive ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

template <class Plan>
CUresult add_work(CUgraphNode *out, CUgraph handle, const NodeList &dependencies, CUcontext context, Plan plan) {
  return build(out, handle, dependencies, [&](Graph &graph, Frontier after) {
    Context *where = nullptr;
    if (const CUresult error = context_for(context, &where); error != CUDA_SUCCESS) return error;
    Work work;
    if (const CUresult error = plan(*where, &work); error != CUDA_SUCCESS) return error;
    *out = handle_of(add_node(graph, {.type = work.type, .work = std::move(work.run), .after = std::move(after)}));
    return CUDA_SUCCESS;
  });
}

bool contains(const Graph &graph, const Graph &other) {
  return &graph == &other || std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto &node) {
    return node->child != nullptr && contains(*node->child, other);
  });
}

CUresult add_child(CUgraphNode *out, CUgraph handle, const NodeList &dependencies, CUgraph child_handle,
                   CUgraphChildGraphNodeOwnership ownership) {
  return build(out, handle, dependencies, [=](Graph &graph, Frontier after) {
    std::shared_ptr<Graph> child = find_graph(child_handle);
    if (child == nullptr || child->capturing || contains(*child, graph)) return CUDA_ERROR_INVALID_VALUE;
    if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
      if (child->owned || (child->allocates && graph.owned)) return CUDA_ERROR_INVALID_VALUE;
    } else {
      if (child->allocates) return CUDA_ERROR_NOT_SUPPORTED;
      child = copy_of(*child, Copy::kForProgram);
      publish(child);
    }
    child->owned = true;
    *out = handle_of(
        add_node(graph, {.type = CU_GRAPH_NODE_TYPE_GRAPH, .after = std::move(after), .child = std::move(child)}));
    return CUDA_SUCCESS;
  });
}

CUresult add_memory(CUgraphNode *out, CUgraph handle, const NodeList &dependencies,
                    CUDA_MEM_ALLOC_NODE_PARAMS_v2 &params) {
  CUDA_MEM_ALLOC_NODE_PARAMS older{params.poolProps, params.accessDescs, params.accessDescCount, params.bytesize, 0};
  const CUresult result = simcuda::cuGraphAddMemAllocNode(out, handle, dependencies.nodes, dependencies.count, &older);
  if (result == CUDA_SUCCESS) params.dptr = older.dptr;
  return result;
}

CUresult add_any(CUgraphNode *out, CUgraph graph, const NodeList &after, CUgraphNodeParams *params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return add_memory(out, graph, after, params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return simcuda::cuGraphAddMemFreeNode(out, graph, after.nodes, after.count, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return simcuda::cuGraphAddEmptyNode(out, graph, after.nodes, after.count);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return add_child(out, graph, after, params->graph.graph, params->graph.ownership);
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host{params->host.fn, params->host.userData};
      return simcuda::cuGraphAddHostNode(out, graph, after.nodes, after.count, &host);
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2 &fill = params->memset;
      const CUDA_MEMSET_NODE_PARAMS older{fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
      return simcuda::cuGraphAddMemsetNode(out, graph, after.nodes, after.count, &older, fill.ctx);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (params->memcpy.flags != 0 || params->memcpy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
      return simcuda::cuGraphAddMemcpyNode(out, graph, after.nodes, after.count, &params->memcpy.copyParams,
                                           params->memcpy.copyCtx);
    default:
      complain("simcuda: cuGraphAddNode of a node of type " + std::to_string(params->type) + " is not simulated");
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                             size_t numDependencies) {
  return build(phGraphNode, hGraph, {dependencies, numDependencies}, [=](Graph &graph, Frontier after) {
    *phGraphNode = handle_of(add_node(graph, {.after = std::move(after)}));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx) {
  if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMSET_NODE_PARAMS &p = *memsetParams;
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  return add_work(phGraphNode, hGraph, {dependencies, numDependencies}, ctx, [&](const Context &context, Work *work) {
    Place target;
    work->type = CU_GRAPH_NODE_TYPE_MEMSET;
    return plan_fill(context, Reach::kInGraph, {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height}, &target,
                     work);
  });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx) {
  if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_work(phGraphNode, hGraph, {dependencies, numDependencies}, ctx, [&](const Context &context, Work *work) {
    BoxCopy copy;
    copy.work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    const CUresult error = plan_3d(context, Reach::kInGraph, *copyParams, Form::kAsynchronous, &copy);
    *work = std::move(copy.work);
    return error;
  });
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                            size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams) {
  if (nodeParams == nullptr || nodeParams->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_HOST_NODE_PARAMS host = *nodeParams;
  return build(phGraphNode, hGraph, {dependencies, numDependencies}, [=](Graph &graph, Frontier after) {
    *phGraphNode = handle_of(add_node(graph, {.type = CU_GRAPH_NODE_TYPE_HOST,
                                              .work = [host] { in_turn([&] { host.fn(host.userData); }); },
                                              .after = std::move(after)}));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, CUgraph childGraph) {
  return add_child(phGraphNode, hGraph, {dependencies, numDependencies}, childGraph,
                   CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        size_t numDependencies, CUgraphNodeParams *nodeParams) {
  return add_any(phGraphNode, hGraph, {dependencies, numDependencies}, nodeParams);
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                           CUgraphNodeParams *nodeParams) {
  if (!plain(dependencyData, numDependencies)) return CUDA_ERROR_NOT_SUPPORTED;
  return add_any(phGraphNode, hGraph, {dependencies, numDependencies}, nodeParams);
}

CUresult cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                           CUgraphNodeParams *nodeParams) {
  return simcuda::cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

}  // namespace simcuda
