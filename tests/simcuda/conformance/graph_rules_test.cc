// What graphs with nodes that allocate or free may not do, and what the nodes say of themselves.
#include <dlfcn.h>

#include "tests/simcuda/conformance/graph.h"

namespace simcuda::conformance {
namespace {

CUresult add_free(const NewGraph &graph, CUdeviceptr address) {
  CUgraphNode node = nullptr;
  return cuGraphAddMemFreeNode(&node, graph.get(), nullptr, 0, address);
}

TEST_CASE("a graph with memory has one executable graph at a time, and no clone") {
  const CurrentContext context;
  NewGraph graph;
  graph.add_block(kMiB);
  CUgraphExec second = nullptr;
  {
    Exec exec(graph);
    CHECK(cuGraphInstantiate(&second, graph.get(), 0) == CUDA_ERROR_NOT_SUPPORTED);
  }
  REQUIRE(cuGraphInstantiate(&second, graph.get(), 0) == CUDA_SUCCESS);
  CHECK(cuGraphExecDestroy(second) == CUDA_SUCCESS);
  CUgraph clone = nullptr;
  CHECK(cuGraphClone(&clone, graph.get()) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("no node of a graph with memory can be destroyed") {
  const CurrentContext context;
  NewGraph graph;
  const CUgraphNode other = graph.empty({}), node = graph.allocate(kMiB).node;
  CHECK(cuGraphDestroyNode(other) != CUDA_SUCCESS);
  CHECK(cuGraphDestroyNode(node) != CUDA_SUCCESS);
  CHECK(all_nodes(graph.get()).size() == 2);
}

TEST_CASE("a graph frees an allocation of a graph, once") {
  const CurrentContext context;
  NewGraph graph, other;
  const CUdeviceptr ordinary = device_memory(64);
  const auto [node, address] = graph.allocate(kMiB);
  CHECK(add_free(graph, ordinary) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add_free(graph, address + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add_free(graph, 0) == CUDA_ERROR_INVALID_VALUE);
  const CUgraphNode freed = graph.free(address, {node});
  CHECK(add_free(graph, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add_free(other, address) != CUDA_SUCCESS);
  CUdeviceptr seen = 0;
  CHECK(cuGraphMemFreeNodeGetParams(freed, &seen) == CUDA_SUCCESS);
  CHECK(seen == address);
  CHECK(type_of(freed) == CU_GRAPH_NODE_TYPE_MEM_FREE);
}

TEST_CASE("what is allocated has a size, a device and no handle for other processes") {
  const CurrentContext context;
  NewGraph graph;
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params = allocation_of(0);
  const auto add = [&](auto change) {
    params = allocation_of(kMiB);
    change(params);
    return cuGraphAddMemAllocNode(&node, graph.get(), nullptr, 0, &params);
  };
  CHECK(add([](auto &wanted) { wanted.bytesize = 0; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add([](auto &wanted) { wanted.poolProps.location.id = 99; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add([](auto &wanted) { wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID; }) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(all_nodes(graph.get()).empty());
  REQUIRE(add([](auto &) {}) == CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS seen = {};
  CHECK(cuGraphMemAllocNodeGetParams(node, &seen) == CUDA_SUCCESS);
  CHECK(seen.dptr == params.dptr);
  CHECK(seen.bytesize == kMiB);
  CHECK(seen.poolProps.location.id == 0);
  CHECK(seen.accessDescCount == 0);
  CHECK(cuGraphMemAllocNodeGetParams(graph.empty({}), &seen) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("two allocations never have the same addresses, in whichever graphs") {
  const CurrentContext context;
  NewGraph first, second;
  const CUdeviceptr one = first.add_block(kMiB), other = first.allocate(kMiB).address;
  const CUdeviceptr third = second.allocate(kMiB).address;
  const auto apart = [](CUdeviceptr a, CUdeviceptr b) { return a + kMiB <= b || b + kMiB <= a; };
  CHECK(apart(one, other));
  CHECK(apart(one, third));
  CHECK(apart(other, third));
}

TEST_CASE("a graph with memory becomes a child graph only where it is moved") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph graph;
  CUgraph child = nullptr;
  REQUIRE(cuGraphCreate(&child, 0) == CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS params = allocation_of(kMiB);
  CUgraphNode node = nullptr, freed = nullptr, nested = nullptr;
  REQUIRE(cuGraphAddMemAllocNode(&node, child, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(cuGraphAddMemFreeNode(&freed, child, &node, 1, params.dptr) == CUDA_SUCCESS);
  CHECK(cuGraphAddChildGraphNode(&nested, graph.get(), nullptr, 0, child) != CUDA_SUCCESS);
  CUgraphNodeParams move = {};
  move.type = CU_GRAPH_NODE_TYPE_GRAPH;
  move.graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
  const CUresult moved = cuGraphAddNode(&nested, graph.get(), nullptr, nullptr, 0, &move);
  if (moved != CUDA_SUCCESS) return;  // a driver before CUDA 12.9
  CHECK(cuGraphDestroy(child) != CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, child, 0) != CUDA_SUCCESS);
  CHECK(cuGraphAddMemAllocNode(&node, child, nullptr, 0, &params) != CUDA_SUCCESS);
  Exec(graph).launch(stream);
  CHECK(graph_memory() == 64 * kMiB);  // H100, driver 580.159
  trim();
}

TEST_CASE("nodes of every kind can be added by their parameters") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  using Add = decltype(&cuGraphAddNode_v2);
  const auto newest = reinterpret_cast<Add>(::dlsym(RTLD_DEFAULT, "cuGraphAddNode_v3"));
  for (const Add add : {&cuGraphAddNode_v2, newest != nullptr ? newest : &cuGraphAddNode_v2}) {
    NewGraph graph;
    const CUdeviceptr result = device_memory(64);
    int calls = 0;
    CUgraphNode last = nullptr;
    const auto next = [&](CUgraphNodeParams &params) {
      const CUgraphNode before = last;
      REQUIRE(add(&last, graph.get(), &before, nullptr, before == nullptr ? 0 : 1, &params) == CUDA_SUCCESS);
      CHECK(type_of(last) == params.type);
    };
    CUgraphNodeParams allocation = {}, fill = {}, copy = {}, call = {}, free = {}, nothing = {};
    allocation.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    allocation.alloc.poolProps = allocation_of(64).poolProps;
    allocation.alloc.bytesize = 64;
    next(allocation);
    fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
    fill.memset = {allocation.alloc.dptr, 0, 0x0403, 2, 32, 1, context.get()};
    next(fill);
    copy.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    copy.memcpy.copyCtx = context.get();
    CUDA_MEMCPY3D &box = copy.memcpy.copyParams;
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = allocation.alloc.dptr;
    box.dstDevice = result;
    box.srcPitch = box.dstPitch = box.WidthInBytes = 64;
    box.srcHeight = box.dstHeight = box.Height = box.Depth = 1;
    next(copy);
    call.type = CU_GRAPH_NODE_TYPE_HOST;
    call.host = {count_call, &calls};
    next(call);
    free.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    free.free.dptr = allocation.alloc.dptr;
    next(free);
    nothing.type = CU_GRAPH_NODE_TYPE_EMPTY;
    next(nothing);
    Exec(graph).launch(stream);
    CHECK(calls == 1);
    std::vector<unsigned char> expected(64, 3);
    for (std::size_t i = 1; i < 64; i += 2) expected[i] = 4;
    CHECK(read_back(result, 64) == expected);
  }
  trim();
}

TEST_CASE("no graph becomes its own child graph, and no size is too large to be refused in order") {
  if (!simulator()) return;  // not measured
  const CurrentContext context;
  NewGraph outer, inner;
  CUgraphNode node = nullptr;
  CUgraphNodeParams move = {};
  move.type = CU_GRAPH_NODE_TYPE_GRAPH;
  move.graph = {inner.get(), CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
  REQUIRE(cuGraphAddNode(&node, outer.get(), nullptr, nullptr, 0, &move) == CUDA_SUCCESS);
  move.graph.graph = outer.get();
  CHECK(cuGraphAddNode(&node, inner.get(), nullptr, nullptr, 0, &move) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphAddChildGraphNode(&node, inner.get(), nullptr, 0, outer.get()) == CUDA_ERROR_INVALID_VALUE);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 511, std::size_t{1} << 62}) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation_of(bytes);
    CHECK(cuGraphAddMemAllocNode(&node, outer.get(), nullptr, 0, &params) == CUDA_ERROR_OUT_OF_MEMORY);
  }
}

// H100, driver 580.159: accepted.
TEST_CASE("an update may give a graph other blocks, of other sizes") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  NewGraph left, larger, freed, same;
  left.allocate(64 * kMiB);
  const CUdeviceptr block = larger.allocate(128 * kMiB).address;
  for (NewGraph *graph : {&freed, &same}) {
    const auto own = graph->allocate(kMiB);
    graph->free(own.address, {own.node});
  }
  Exec one(left), other(freed);
  CUgraphExecUpdateResultInfo info = {};
  CHECK(cuGraphExecUpdate(one.get(), larger.get(), &info) == CUDA_SUCCESS);
  one.launch(stream);
  CHECK(graph_memory() == 128 * kMiB);
  CHECK(cuMemFree(block) == CUDA_SUCCESS);
  CHECK(cuGraphExecUpdate(other.get(), freed.get(), &info) == CUDA_SUCCESS);
  CHECK(cuGraphExecUpdate(other.get(), same.get(), &info) == CUDA_SUCCESS);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  trim();
}

// Answers that no device was asked for.
TEST_CASE("the simulator refuses what it takes for errors of graphs with memory") {
  if (!simulator()) return;
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  NewGraph unordered, freeing, allocating, same;
  CUgraphExec exec = nullptr;
  unordered.free(unordered.allocate(kMiB).address, {});
  CHECK(cuGraphInstantiate(&exec, unordered.get(), 0) == CUDA_ERROR_INVALID_VALUE);
  freeing.free(allocating.allocate(kMiB).address, {});
  Exec second(freeing);
  CHECK(cuGraphLaunch(second.get(), stream) == CUDA_ERROR_INVALID_VALUE);
  Exec first(allocating);
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(first.get(), stream) == CUDA_ERROR_NOT_SUPPORTED);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace
}  // namespace simcuda::conformance
