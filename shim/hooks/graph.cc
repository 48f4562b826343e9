// Graphs that allocate memory: building, instantiating, updating, uploading, destroying and trimming. Launches are in
// reach.cc.
// Layer: hooks. Threads: any.
#include "hooks/graph_run.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::legacy;
using ration::hooks::per_thread;
using ration::hooks::uploading;
using ration::policy::GraphMemory;

namespace {

// Makes a call that adds a node to a graph.
template <class Slot, class... Arguments>
CUresult adding(bool allocates, const Slot &slot, Arguments... arguments) {
  if (!slot.present()) {
    return ration::hooks::kAbsent;
  }
  if (!allocates) {
    return slot(arguments...);
  }
  return forwarding<GraphMemory>(
      slot,
      [](GraphMemory &memory, const auto &call) {
        memory.note_allocation();
        return call();
      },
      arguments...);
}

bool allocates(const CUgraphNodeParams *params) {
  return params != nullptr && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

template <class Slot, class... Rest>
CUresult instantiate(const Slot &slot, const char *api, std::uint64_t flags, CUgraphExec *exec, CUgraph graph,
                     Rest... rest) {
  if (exec == nullptr && slot.present()) {
    return slot(exec, graph, rest...);
  }
  return forwarding<GraphMemory>(
      slot, [=](GraphMemory &memory, const auto &call) { return memory.instantiate(api, graph, flags, exec, call); },
      exec, graph, rest...);
}

template <class Slot>
CUresult instantiate_with(const Slot &slot, const char *api, CUgraphExec *exec, CUgraph graph,
                          CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  return instantiate(slot, api, params != nullptr ? params->flags : 0, exec, graph, params);
}

template <class Slot, class... Rest>
CUresult update(const Slot &slot, CUgraphExec exec, CUgraph graph, Rest... rest) {
  if (!ration::hooks::graphs_hold_memory()) {
    return slot.present() ? slot(exec, graph, rest...) : ration::hooks::kAbsent;
  }
  return forwarding<GraphMemory>(
      slot, [=](GraphMemory &memory, const auto &call) { return memory.update(exec, graph, call); }, exec, graph,
      rest...);
}

}  // namespace

extern "C" {

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
  return adding(true, real.cuGraphAddMemAllocNode, phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        size_t numDependencies, CUgraphNodeParams *nodeParams) {
  return adding(allocates(nodeParams), real.cuGraphAddNode, phGraphNode, hGraph, dependencies, numDependencies,
                nodeParams);
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                           CUgraphNodeParams *nodeParams) {
  return adding(allocates(nodeParams), real.cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, dependencyData,
                numDependencies, nodeParams);
}

CUresult cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                           CUgraphNodeParams *nodeParams) {
  return adding(allocates(nodeParams), real.cuGraphAddNode_v3, phGraphNode, hGraph, dependencies, dependencyData,
                numDependencies, nodeParams);
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                            size_t bufferSize) {
  return instantiate(real.cuGraphInstantiate, "cuGraphInstantiate", 0, phGraphExec, hGraph, phErrorNode, logBuffer,
                     bufferSize);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                               size_t bufferSize) {
  return instantiate(real.cuGraphInstantiate_v2, "cuGraphInstantiate_v2", 0, phGraphExec, hGraph, phErrorNode,
                     logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return instantiate(real.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", flags, phGraphExec, hGraph,
                     flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
  return instantiate_with(real.cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", phGraphExec, hGraph,
                          instantiateParams);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
  return instantiate_with(real.cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams_ptsz", phGraphExec,
                          hGraph, instantiateParams);
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  const auto run = uploading(real.cuGraphUpload, "cuGraphUpload", legacy(hStream));
  return run.present() ? run(hGraphExec, hStream) : ration::hooks::kAbsent;
}

CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  const auto run = uploading(real.cuGraphUpload_ptsz, "cuGraphUpload_ptsz", per_thread(hStream));
  return run.present() ? run(hGraphExec, hStream) : ration::hooks::kAbsent;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                           CUgraphExecUpdateResult *updateResult_out) {
  return update(real.cuGraphExecUpdate, hGraphExec, hGraph, hErrorNode_out, updateResult_out);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo) {
  return update(real.cuGraphExecUpdate_v2, hGraphExec, hGraph, resultInfo);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return forwarding<GraphMemory>(
      real.cuGraphExecDestroy, [=](GraphMemory &memory, const auto &call) { return memory.destroy(hGraphExec, call); },
      hGraphExec);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return forwarding<GraphMemory>(
      real.cuDeviceGraphMemTrim,
      [=](GraphMemory &memory, const auto &call) { return memory.trim("cuDeviceGraphMemTrim", device, call); }, device);
}

}  // extern "C"
