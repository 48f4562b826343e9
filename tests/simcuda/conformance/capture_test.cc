// Capture: what is captured, who joins, how it ends.
#include <atomic>
#include <thread>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("captured work is not done until its graph is launched, and is done again at each launch") {
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

TEST_CASE("a captured copy reads its source when it is launched") {
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

TEST_CASE("a captured kernel gets at each launch the arguments that it was captured with") {
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
        *value = 1000;  // a kernel's parameters are its own
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

TEST_CASE("a launched graph runs behind the host, in its stream's order") {
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

TEST_CASE("launches of one graph follow each other, whatever their streams") {
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

TEST_CASE("a graph that is launched into a capture becomes part of it") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  begin(stream);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
  const CUgraph inner = end(stream);
  begin(stream);
  launch(inner, stream);
  launch(inner, stream);
  const CUgraph outer = end(stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 0);
  launch(outer, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 2);
}

TEST_CASE("a capture goes on in an existing graph") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph = nullptr, seen = nullptr;
  REQUIRE(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  std::atomic<int> number{0};
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
            CUDA_SUCCESS);
    REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, 0) != CUDA_SUCCESS);
    REQUIRE(cuStreamEndCapture(stream, &seen) == CUDA_SUCCESS);
    CHECK(seen == graph);
  }
  CHECK(nodes_of(graph) == 2);
  launch(graph, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 2);
}

TEST_CASE("a stream that waits for a captured event joins the capture, and must come back") {
  const CurrentContext context;
  const CUstream origin = new_stream(CU_STREAM_NON_BLOCKING), side = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = new_event(), back = new_event();
  std::atomic<int> number{0};
  for (const bool joined : {true, false}) {
    begin(origin);
    REQUIRE(cuEventRecord(fork, origin) == CUDA_SUCCESS);
    REQUIRE(cuStreamWaitEvent(side, fork, 0) == CUDA_SUCCESS);
    CHECK(capture_status(side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    REQUIRE(cuLaunchHostFunc(side, add_one, &number) == CUDA_SUCCESS);
    if (joined) {
      REQUIRE(cuEventRecord(back, side) == CUDA_SUCCESS);
      REQUIRE(cuStreamWaitEvent(origin, back, 0) == CUDA_SUCCESS);
      launch(end(origin), origin);
    } else {
      CHECK(end_result(origin) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    }
    CHECK(capture_status(side) == CU_STREAM_CAPTURE_STATUS_NONE);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(number == 1);
  }
}

TEST_CASE("a capture ends where it began") {
  const CurrentContext context;
  const CUstream origin = new_stream(CU_STREAM_NON_BLOCKING), side = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = new_event();
  begin(origin);
  REQUIRE(cuEventRecord(fork, origin) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(side, fork, 0) == CUDA_SUCCESS);
  CHECK(end_result(side) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(capture_status(side) != CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(end_result(origin) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(capture_status(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(end_result(origin) == CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE("only the thread that began a capture ends it, unless it is relaxed") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const auto end_elsewhere = [&] {
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
      CUgraph graph = nullptr;
      cuCtxSetCurrent(context.get());
      result = cuStreamEndCapture(stream, &graph);
    }).join();
    return result;
  };
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    begin(stream, mode);
    CHECK(end_elsewhere() == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(end_result(stream) == CUDA_SUCCESS);
  }
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(end_elsewhere() == CUDA_SUCCESS);
}

TEST_CASE("what is captured and what is not cannot wait for each other, nor can two captures") {
  const CurrentContext context;
  const CUstream one = new_stream(CU_STREAM_NON_BLOCKING), two = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent outside = new_event(), inside = new_event();
  REQUIRE(cuEventRecord(outside, two) == CUDA_SUCCESS);
  begin(one);
  CHECK(cuStreamWaitEvent(one, outside, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(capture_status(one) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(end_result(one) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  begin(one);
  begin(two);
  REQUIRE(cuEventRecord(inside, two) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(one, inside, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(end_result(one) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(end_result(two) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("nothing more is captured by a capture that was spoilt") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  std::atomic<int> number{0};
  begin(stream);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuLaunchHostFunc(stream, add_one, &number) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuEventRecord(event, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 1);
}

TEST_CASE("a capture is told by id, graph and dependencies, in every version of the call") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  cuuint64_t first = 0, second = 0;
  std::atomic<int> number{0};
  REQUIRE(cuStreamGetCaptureInfo(stream, &status, &first, nullptr, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  begin(stream);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  const CUgraphNode *dependencies = nullptr;
  std::size_t count = 0;
  REQUIRE(cuStreamGetCaptureInfo_v2(stream, &status, &first, &graph, &dependencies, &count) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(count == 1);
  CUgraphNode node = nullptr;
  std::size_t one = 1;
  REQUIRE(cuGraphGetNodes(graph, &node, &one) == CUDA_SUCCESS);
  CHECK(dependencies[0] == node);
  CHECK(end(stream) == graph);
  begin(stream);
  REQUIRE(cuStreamGetCaptureInfo_v2(stream, &status, &second, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(second != first);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuStreamGetCaptureInfo(stream, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("a stream captures once at a time, the legacy stream never, a thread's own does") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  begin(stream);
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(end_result(stream) == CUDA_SUCCESS);
  CHECK(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(3)) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(capture_status(CU_STREAM_PER_THREAD) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture_ptsz(nullptr, &graph) == CUDA_SUCCESS);
  REQUIRE(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

TEST_CASE("a stream that is destroyed takes its capture along") {
  if (!simulator()) return;  // not documented; what matters is that nothing is held up for ever
  const CurrentContext context;
  const CUstream origin = new_stream(), side = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = new_event();
  begin(origin);
  REQUIRE(cuEventRecord(fork, origin) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitEvent(side, fork, 0) == CUDA_SUCCESS);
  REQUIRE(cuStreamDestroy(origin) == CUDA_SUCCESS);
  CHECK(capture_status(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  CUdeviceptr device = 0;
  CHECK(cuMemAlloc(&device, 512) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(side, fork, 0) == CUDA_ERROR_CAPTURED_EVENT);
}

TEST_CASE("a context that is destroyed takes its captures along") {
  const CurrentContext staying;
  {
    const CurrentContext going;
    begin(new_stream(CU_STREAM_NON_BLOCKING));
  }
  REQUIRE(cuCtxSetCurrent(staying.get()) == CUDA_SUCCESS);
  CUdeviceptr device = 0;
  CHECK(cuMemAlloc(&device, 512) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
