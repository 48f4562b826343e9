// What is captured, and what a launch of the graph does.
#include <vector>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("captured work runs only when its graph is launched, and again at each launch") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(64), copy = device_memory(64);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  REQUIRE(cuMemsetD8(device, 0, 64) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(copy, 0, 64) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  std::atomic<int> launches{0};
  begin(stream);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  REQUIRE(cuMemsetD8Async(device, 7, 64, stream) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoDAsync(copy, device, 64, stream) == CUDA_SUCCESS);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &launches) == CUDA_SUCCESS);
  const CUgraph graph = end(stream);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(nodes_of(graph) == 3);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(launches == 0);
  CHECK(read_back(copy, 64) == std::vector<unsigned char>(64, 0));

  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(launches == 2);
  CHECK(read_back(copy, 64) == std::vector<unsigned char>(64, 7));
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  if (!simulator()) return;  // a real driver may crash on a dead handle
  CHECK(cuGraphExecDestroy(exec) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGraphLaunch(exec, stream) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a captured copy reads its source at launch") {
  const CurrentContext context;
  const CUdeviceptr device = device_memory(64);
  void *pinned = nullptr;
  REQUIRE(cuMemHostAlloc(&pinned, 64, 0) == CUDA_SUCCESS);
  std::vector<unsigned char> pageable(64);
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  for (unsigned char *const source : {static_cast<unsigned char *>(pinned), pageable.data()}) {
    begin(stream);
    REQUIRE(cuMemcpyHtoDAsync(device, source, 64, stream) == CUDA_SUCCESS);
    const CUgraph graph = end(stream);
    for (const unsigned char value : {std::uint8_t{3}, std::uint8_t{4}}) {
      std::fill_n(source, 64, value);
      launch(graph, stream);
      REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
      CHECK(read_back(device, 64) == std::vector<unsigned char>(64, value));
    }
  }
}

TEST_CASE("a captured kernel receives its captured arguments at each launch") {
  if (!simulator()) return;
  const CurrentContext context;
  static int sum = 0;
  sum = 0;
  const std::size_t sizes[] = {sizeof(int)};
  simulator().register_kernel(
      "capture_test_add",
      [](const simcuda_launch *one) {
        auto *value = static_cast<int *>(one->params[0]);
        sum += *value;
        *value = 1000;  // a kernel has its own copy of the parameters
      },
      sizes, 1);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "capture_test_add") == CUDA_SUCCESS);
  const CUstream stream = new_stream();
  int value = 5;
  void *params[] = {&value};
  begin(stream);
  REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr) == CUDA_SUCCESS);
  value = 6;
  const CUgraph graph = end(stream);
  launch(graph, stream);
  launch(graph, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(sum == 10);
}

TEST_CASE("a launched graph runs asynchronously to the host, in its stream's order") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  begin(stream);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
  const CUgraph graph = end(stream);
  Gate gate;
  gate.hold(stream);
  launch(graph, stream);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CHECK(number == 0);
  gate.open();
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(number == 1);
}

TEST_CASE("launches of one graph run one after another, even in different streams") {
  const CurrentContext context;
  const CUstream first = new_stream(CU_STREAM_NON_BLOCKING), second = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  begin(first);
  REQUIRE(cuLaunchHostFunc(first, add_one, &number) == CUDA_SUCCESS);
  const CUgraph graph = end(first);
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  Gate gate;
  gate.hold(first);
  REQUIRE(cuGraphLaunch(exec, first) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(exec, second) == CUDA_SUCCESS);
  CHECK(stays([&] { return cuStreamQuery(second) == CUDA_ERROR_NOT_READY && number == 0; }));
  gate.open();
  REQUIRE(cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(number == 2);
}

TEST_CASE("a graph launched into a capture becomes part of it") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  begin(stream);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
  const CUgraph inner = end(stream);
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, inner, 0) == CUDA_SUCCESS);
  begin(stream);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  const CUgraph outer = end(stream);
  REQUIRE(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 0);
  launch(outer, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 2);
}

TEST_CASE("a capture continues in an existing graph") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph = nullptr, seen = nullptr;
  REQUIRE(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  std::atomic<int> number{0};
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
            CUDA_SUCCESS);
    REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
    REQUIRE(cuStreamEndCapture(stream, &seen) == CUDA_SUCCESS);
    CHECK(seen == graph);
  }
  CHECK(nodes_of(graph) == 2);
  launch(graph, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 2);
}

TEST_CASE("a capture forbids the instantiation of a graph as it does an allocation") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph whole = nullptr;
  REQUIRE(cuGraphCreate(&whole, 0) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  begin(stream);
  // H100, driver 580.159: 900. H100, H200: 901 at the end.
  CHECK(cuGraphInstantiate(&exec, whole, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuGraphInstantiate(&exec, whole, 0) == CUDA_SUCCESS);
  CHECK(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(cuGraphDestroy(whole) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
