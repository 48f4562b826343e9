// Shared by the tests of graphs: graphs built node by node, and the device's memory for graphs.
#pragma once
#include <vector>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {

inline std::uint64_t graph_memory(CUgraphMem_attribute which = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) {
  cuuint64_t value = 0;
  REQUIRE(cuDeviceGetGraphMemAttribute(0, which, &value) == CUDA_SUCCESS);
  return value;
}

inline void trim() {
  REQUIRE(cuDeviceGraphMemTrim(0) == CUDA_SUCCESS);
}

inline CUDA_MEM_ALLOC_NODE_PARAMS allocation_of(std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  return params;
}

using Nodes = std::vector<CUgraphNode>;

inline CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type{};
  REQUIRE(cuGraphNodeGetType(node, &type) == CUDA_SUCCESS);
  return type;
}

inline Nodes all_nodes(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
  Nodes nodes(count);
  REQUIRE(cuGraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

inline Nodes dependencies_of(CUgraphNode node) {
  std::size_t count = 0;
  REQUIRE(cuGraphNodeGetDependencies(node, nullptr, nullptr, &count) == CUDA_SUCCESS);
  Nodes nodes(count);
  REQUIRE(cuGraphNodeGetDependencies(node, nodes.data(), nullptr, &count) == CUDA_SUCCESS);
  return nodes;
}

// Adds 1 to an int; for host nodes.
inline void count_call(void *number) {
  ++*static_cast<int *>(number);
}

// A graph that lives as long as this object, with methods that REQUIRE success.
class NewGraph {
 public:
  NewGraph() {
    start_driver();
    REQUIRE(cuGraphCreate(&graph_, 0) == CUDA_SUCCESS);
  }
  ~NewGraph() {
    if (graph_ != nullptr) cuGraphDestroy(graph_);
  }
  NewGraph(const NewGraph &) = delete;
  NewGraph &operator=(const NewGraph &) = delete;
  CUgraph get() const { return graph_; }

  void destroy() {
    REQUIRE(cuGraphDestroy(graph_) == CUDA_SUCCESS);
    graph_ = nullptr;
  }
  struct Allocated {
    CUgraphNode node;
    CUdeviceptr address;
  };
  Allocated allocate(std::size_t bytes, const Nodes &after = {}) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation_of(bytes);
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddMemAllocNode(&node, graph_, after.data(), after.size(), &params) == CUDA_SUCCESS);
    return {node, params.dptr};
  }
  // Adds a block that is allocated and freed at once.
  CUdeviceptr add_block(std::size_t bytes) {
    const Allocated block = allocate(bytes);
    free(block.address, {block.node});
    return block.address;
  }
  CUgraphNode free(CUdeviceptr address, const Nodes &after) {
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddMemFreeNode(&node, graph_, after.data(), after.size(), address) == CUDA_SUCCESS);
    return node;
  }
  CUgraphNode empty(const Nodes &after) {
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddEmptyNode(&node, graph_, after.data(), after.size()) == CUDA_SUCCESS);
    return node;
  }
  CUgraphNode call(CUhostFn function, void *argument, const Nodes &after) {
    const CUDA_HOST_NODE_PARAMS params{function, argument};
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddHostNode(&node, graph_, after.data(), after.size(), &params) == CUDA_SUCCESS);
    return node;
  }
  CUgraphNode fill(CUdeviceptr to, unsigned char value, std::size_t bytes, const Nodes &after) {
    CUDA_MEMSET_NODE_PARAMS params = {};
    params.dst = to;
    params.value = value;
    params.elementSize = 1;
    params.width = bytes;
    params.height = 1;
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddMemsetNode(&node, graph_, after.data(), after.size(), &params, current()) == CUDA_SUCCESS);
    return node;
  }
  CUgraphNode copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, const Nodes &after) {
    CUDA_MEMCPY3D params = {};
    params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    params.srcDevice = from;
    params.dstDevice = to;
    params.srcPitch = params.dstPitch = params.WidthInBytes = bytes;
    params.Height = params.Depth = params.srcHeight = params.dstHeight = 1;
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddMemcpyNode(&node, graph_, after.data(), after.size(), &params, current()) == CUDA_SUCCESS);
    return node;
  }

 private:
  static CUcontext current() {
    CUcontext context = nullptr;
    REQUIRE(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    return context;
  }
  CUgraph graph_ = nullptr;
};

// An executable graph that lives as long as this object.
class Exec {
 public:
  explicit Exec(CUgraph graph, unsigned long long flags = 0) {
    REQUIRE(cuGraphInstantiate(&exec_, graph, flags) == CUDA_SUCCESS);
  }
  explicit Exec(const NewGraph &graph, unsigned long long flags = 0) : Exec(graph.get(), flags) {}
  ~Exec() {
    if (exec_ != nullptr) cuGraphExecDestroy(exec_);
  }
  Exec(const Exec &) = delete;
  Exec &operator=(const Exec &) = delete;
  CUgraphExec get() const { return exec_; }

  void launch(CUstream stream) {
    REQUIRE(cuGraphLaunch(exec_, stream) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  }
  void destroy() {
    REQUIRE(cuGraphExecDestroy(exec_) == CUDA_SUCCESS);
    exec_ = nullptr;
  }

 private:
  CUgraphExec exec_ = nullptr;
};

// The first executable graph and its block also take memory for the driver itself (H100, driver 580.159: 2 MiB), so
// this is called before free memory is compared.
inline void take_drivers_own(CUstream stream) {
  NewGraph graph;
  const auto [node, address] = graph.allocate(kMiB);
  graph.fill(address, 1, kMiB, {node});
  Exec(graph).launch(stream);
  read_back(address, kMiB);
  REQUIRE(cuMemFree(address) == CUDA_SUCCESS);
  trim();
}

}  // namespace simcuda::conformance
