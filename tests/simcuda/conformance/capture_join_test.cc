// Joining a capture, ending it, and querying it meanwhile.
#include <thread>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("a stream that waits for a captured event joins the capture, and must be joined back") {
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

TEST_CASE("a capture ends in its origin stream") {
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

TEST_CASE("an end by another thread than the one that began a capture is refused and drops it, unless it is relaxed") {
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
    // H100, H200, driver 580.159: no capture any more, and 401
    CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(end_result(stream) == CUDA_ERROR_ILLEGAL_STATE);
  }
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(end_elsewhere() == CUDA_SUCCESS);
}

TEST_CASE("captured and uncaptured work cannot wait for each other, nor can two captures") {
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

TEST_CASE("an invalidated capture records nothing more") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  std::atomic<int> number{0};
  begin(stream);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(capture_status(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuLaunchHostFunc(stream, add_one, &number) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuEventRecord(event, stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);  // H100, H200, driver 580.159: 900
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  REQUIRE(cuLaunchHostFunc(stream, add_one, &number) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(number == 1);
}

TEST_CASE("every version of the query returns a capture's id, graph and dependencies") {
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

TEST_CASE("a stream captures once at a time, the legacy stream never, a per-thread default stream does") {
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

TEST_CASE("a destroyed stream ends its capture") {
  if (!simulator()) return;  // not documented; the test only requires that nothing hangs
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

TEST_CASE("a destroyed context ends its captures") {
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
