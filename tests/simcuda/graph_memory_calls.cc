// The nodes that allocate and free, and a device's memory for graphs. Layer: graph_memory.h. Threads: any.
#include <algorithm>
#include <cstring>

#include "implemented.h"
#include "tests/simcuda/bytes.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/device_attributes.h"
#include "tests/simcuda/entry.h"
#include "tests/simcuda/graph_build.h"
#include "tests/simcuda/graph_memory.h"

namespace simcuda {
namespace {

template <class Body>
CUresult with_device(CUdevice ordinal, Body body) {
  Device *device = nullptr;
  if (const CUresult error = device_of(ordinal, &device); error != CUDA_SUCCESS) return error;
  const Lock lock(driver().mutex);
  return body(*device);
}

bool known(const CUmemAccessDesc &access) {
  Device *device = nullptr;
  const bool flags = access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || access.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                     access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return flags && access.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         device_of(access.location.id, &device) == CUDA_SUCCESS;
}

// Memory that can be shared with other processes cannot be a graph's (cuda.h, CUDA_MEM_ALLOC_NODE_PARAMS).
CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS &params, Device **device) {
  const CUmemPoolProps &props = params.poolProps;
  if (params.bytesize == 0 || props.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  if (props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      device_of(props.location.id, device) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute_of(**device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (params.accessDescCount != 0 && params.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto *const first = params.accessDescs;
  return std::all_of(first, first + params.accessDescCount, known) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const GraphNode *node_of(CUgraphNode handle, CUgraphNodeType type) {
  const GraphNode *const node = find_node(handle);
  return node != nullptr && node->type == type ? node : nullptr;
}

}  // namespace

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  note("%zu", nodeParams->bytesize);
  return build(phGraphNode, hGraph, {dependencies, numDependencies}, [=](Graph &graph, Frontier after) {
    Device *device = nullptr;
    if (const CUresult error = check(*nodeParams, &device); error != CUDA_SUCCESS) return error;
    if (graph.owned) return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<GraphBlock> block = new_block(*device, nodeParams->bytesize);
    if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    block->properties = nodeParams->poolProps;
    block->access.assign(nodeParams->accessDescs, nodeParams->accessDescs + nodeParams->accessDescCount);
    nodeParams->dptr = block->address;
    *phGraphNode = handle_of(add_allocation(graph, std::move(block), std::move(after)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
  const Lock lock(driver().mutex);
  const GraphNode *const node = node_of(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  if (node == nullptr || params_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const GraphBlock &block = *node->block;
  *params_out = {block.properties, block.access.empty() ? nullptr : block.access.data(), block.access.size(),
                 block.requested, block.address};
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, CUdeviceptr dptr) {
  return build(phGraphNode, hGraph, {dependencies, numDependencies}, [=](Graph &graph, Frontier after) {
    if (graph.owned) return CUDA_ERROR_NOT_SUPPORTED;
    const GraphNode *const node = add_free(graph, dptr, std::move(after));
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *phGraphNode = handle_of(node);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out) {
  const Lock lock(driver().mutex);
  const GraphNode *const node = node_of(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE);
  if (node == nullptr || dptr_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *dptr_out = node->block->address;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return with_device(device, [](Device &found) {
    trim_graph_pool(found);
    return CUDA_SUCCESS;
  });
}

// All that is reserved counts as used, as an H100 with driver 580 says it.
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_device(device, [=](const Device &found) {
    switch (attr) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        return put(value, found.graph_pool.reserved);
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        return put(value, found.graph_pool.used_high);
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        return put(value, found.graph_pool.reserved_high);
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
  cuuint64_t wanted = 0;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(&wanted, value, sizeof wanted);
  return with_device(device, [=](Device &found) {
    const bool used = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    if ((!used && attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) || wanted != 0) return CUDA_ERROR_INVALID_VALUE;
    (used ? found.graph_pool.used_high : found.graph_pool.reserved_high) = found.graph_pool.reserved;
    return CUDA_SUCCESS;
  });
}

}  // namespace simcuda
