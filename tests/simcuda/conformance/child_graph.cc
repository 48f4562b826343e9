#include "tests/simcuda/conformance/child_graph.h"

#define __CUDA_API_VERSION_INTERNAL  // exports by their own names
#include <cuda.h>
#include <dlfcn.h>

#define DRIVER(symbol) reinterpret_cast<decltype(&symbol)>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), #symbol))

int launch_graph(std::size_t bytes) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr, freed = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  CUresult result = DRIVER(cuGraphCreate)(&graph, 0);
  if (result == CUDA_SUCCESS) result = DRIVER(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params);
  if (result == CUDA_SUCCESS) result = DRIVER(cuGraphAddMemFreeNode)(&freed, graph, &node, 1, params.dptr);
  if (result == CUDA_SUCCESS) result = DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0);
  if (result == CUDA_SUCCESS) result = DRIVER(cuGraphLaunch)(exec, nullptr);
  return static_cast<int>(result);
}
