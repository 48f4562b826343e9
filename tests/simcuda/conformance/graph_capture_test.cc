// Stream-ordered memory in a capture: allocations and frees become nodes of the graph.
#include "tests/simcuda/conformance/capture.h"
#include "tests/simcuda/conformance/graph.h"
#include "tests/simcuda/conformance/pool.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("a captured allocation, fill, copy and free run at each launch, in graph memory") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr result = device_memory(kMiB);
  Pool own;
  take_drivers_own(stream);
  for (const CUmemoryPool pool : {own.get(), CUmemoryPool{}}) {
    trim();
    const std::size_t free = free_bytes();
    CUdeviceptr block = 0;
    begin(stream);
    REQUIRE((pool != nullptr ? cuMemAllocFromPoolAsync(&block, kMiB, pool, stream)
                             : cuMemAllocAsync(&block, kMiB, stream)) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD8Async(block, 9, kMiB, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemcpyDtoDAsync(result, block, kMiB, stream) == CUDA_SUCCESS);
    CHECK(graph_memory() == 0);
    REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
    if (simulator()) CHECK(cuMemFreeAsync(block, stream) == CUDA_ERROR_INVALID_VALUE);  // not measured
    const CUgraph graph = end(stream);
    const Nodes nodes = all_nodes(graph);
    REQUIRE(nodes.size() == 4);
    CHECK(type_of(nodes[0]) == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    CHECK(type_of(nodes[1]) == CU_GRAPH_NODE_TYPE_MEMSET);
    CHECK(type_of(nodes[2]) == CU_GRAPH_NODE_TYPE_MEMCPY);
    CHECK(type_of(nodes[3]) == CU_GRAPH_NODE_TYPE_MEM_FREE);
    Exec exec(graph);
    CHECK(free_bytes() == free);
    for (int round = 0; round < 2; ++round) {
      REQUIRE(cuMemsetD8(result, 0, kMiB) == CUDA_SUCCESS);
      REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
      exec.launch(stream);
      CHECK(read_back(result, kMiB) == std::vector<unsigned char>(kMiB, 9));
    }
    CHECK(graph_memory() == 32 * kMiB);
    CHECK(free_bytes() == free - 32 * kMiB);
    CHECK(own.reserved() == 0);
    REQUIRE(cuGraphDestroy(graph) == CUDA_SUCCESS);
  }
  trim();
}

TEST_CASE("what a capture allocated and did not free is used after the launch and freed in a stream") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  trim();
  CUdeviceptr block = 0;
  begin(stream);
  REQUIRE(cuMemAllocAsync(&block, kMiB, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8Async(block, 3, kMiB, stream) == CUDA_SUCCESS);
  const CUgraph graph = end(stream);
  if (simulator()) {  // not measured
    CHECK(cuMemsetD8Async(block, 4, kMiB, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemFreeAsync(block, stream) == CUDA_ERROR_INVALID_VALUE);
  }
  Exec exec(graph);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cuGraphLaunch(exec.get(), stream) == CUDA_SUCCESS);
    std::vector<unsigned char> bytes(kMiB);
    REQUIRE(cuMemcpyDtoHAsync(bytes.data(), block, kMiB, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(bytes == std::vector<unsigned char>(kMiB, 3));
  }
  REQUIRE(cuGraphDestroy(graph) == CUDA_SUCCESS);
  trim();
}

TEST_CASE("nodes that the program adds to a graph during its capture need not be joined") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  int captured = 0, added = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  begin(stream);
  REQUIRE(cuLaunchHostFunc(stream, count_call, &captured) == CUDA_SUCCESS);
  REQUIRE(cuStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  const CUDA_HOST_NODE_PARAMS params{count_call, &added};
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddHostNode(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(end(stream) == graph);
  Exec(graph).launch(stream);
  CHECK(captured == 1);
  CHECK(added == 1);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

TEST_CASE("the attributes of graph memory can be read during a capture") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  begin(stream);
  cuuint64_t value = 0;
  CHECK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value) == CUDA_SUCCESS);
  CHECK(end_result(stream) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
