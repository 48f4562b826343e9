// Events of a whole context.
#include <thread>

#include "tests/simcuda/conformance/capture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("an event of a context follows the work of all its streams") {
  const CurrentContext context;
  const CUstream blocking = new_stream(), apart = new_stream(CU_STREAM_NON_BLOCKING);
  for (const unsigned flags : {unsigned{CU_EVENT_DISABLE_TIMING}, unsigned{CU_EVENT_DEFAULT}}) {
    for (const CUstream stream : {blocking, apart, CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}) {
      const CUevent event = new_event(flags);
      Gate gate;
      gate.hold(stream);
      REQUIRE(cuCtxRecordEvent(context.get(), event) == CUDA_SUCCESS);
      CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
      gate.open();
      CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
      CHECK(cuEventQuery(event) == CUDA_SUCCESS);
    }
  }
}

TEST_CASE("an event of a context covers the streams of other threads and those destroyed with queued work") {
  const CurrentContext context;
  const CUevent event = new_event();
  Gate elsewhere, orphaned;
  std::thread([&] {
    cuCtxSetCurrent(context.get());
    elsewhere.hold(CU_STREAM_PER_THREAD);
  }).join();
  REQUIRE(cuCtxRecordEvent(context.get(), event) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  elsewhere.open();
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  const CUstream stream = new_stream();
  orphaned.hold(stream);
  REQUIRE(cuStreamDestroy(stream) == CUDA_SUCCESS);
  REQUIRE(cuCtxRecordEvent(context.get(), event) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  orphaned.open();
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
}

// H100, H200, driver 580.159: a second host function would wait for the one that holds the stream.
TEST_CASE("an event of a context does not follow later work, and does not order streams") {
  const CurrentContext context;
  const CUstream held = new_stream(), other = new_stream();
  const CUevent event = new_event(), timed = new_event();
  REQUIRE(cuCtxRecordEvent(context.get(), event) == CUDA_SUCCESS);
  Gate gate;
  gate.hold(held);
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  REQUIRE(cuCtxRecordEvent(context.get(), timed) == CUDA_SUCCESS);
  CHECK(runs_through(other));
  CHECK(cuEventQuery(timed) == CUDA_ERROR_NOT_READY);
}

TEST_CASE("an event of a context records the time") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  const CUevent start = new_event(), end = new_event();
  float milliseconds = -1;
  Gate gate;
  REQUIRE(cuCtxRecordEvent(context.get(), start) == CUDA_SUCCESS);
  gate.hold(stream);
  REQUIRE(cuCtxRecordEvent(context.get(), end) == CUDA_SUCCESS);
  CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_NOT_READY);
  gate.open();
  REQUIRE(cuEventSynchronize(end) == CUDA_SUCCESS);
  REQUIRE(cuEventElapsedTime(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 0);
}

TEST_CASE("an event can be recorded only in its own context") {
  const CurrentContext first;
  const CUevent event = new_event();
  const CurrentContext second;
  CHECK(cuCtxRecordEvent(second.get(), event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuCtxRecordEvent(first.get(), event) == CUDA_SUCCESS);  // whichever context is current
  CHECK(cuCtxRecordEvent(nullptr, event) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("recording an event of a context in which a stream captures fails and invalidates the capture") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  const ThreadMode relaxed(CU_STREAM_CAPTURE_MODE_RELAXED);
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(cuCtxRecordEvent(context.get(), event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuCtxRecordEvent(context.get(), event) == CUDA_SUCCESS);
}

TEST_CASE("another context's capture does not prevent a context's event") {
  const CurrentContext quiet;
  const CUevent event = new_event();
  const CurrentContext capturing;
  const CUstream stream = new_stream();
  begin(stream);
  CHECK(cuCtxRecordEvent(quiet.get(), event) == CUDA_SUCCESS);
  CHECK(end_result(stream) == CUDA_SUCCESS);
}

TEST_CASE("a context that waits for an event delays all its later work, but not the host") {
  const CurrentContext first;
  const CUstream held = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = new_event();
  const CurrentContext second;
  const CUstream apart = new_stream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> number{0};
  {
    Gate gate;
    REQUIRE(cuCtxSetCurrent(first.get()) == CUDA_SUCCESS);
    gate.hold(held);
    REQUIRE(cuEventRecord(event, held) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(second.get()) == CUDA_SUCCESS);
    REQUIRE(cuCtxWaitEvent(second.get(), event) == CUDA_SUCCESS);
    REQUIRE(cuLaunchHostFunc(apart, add_one, &number) == CUDA_SUCCESS);
    REQUIRE(cuLaunchHostFunc(nullptr, add_one, &number) == CUDA_SUCCESS);
    CHECK(stays([&] {
      return cuStreamQuery(apart) == CUDA_ERROR_NOT_READY && cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY &&
             number == 0;
    }));
    gate.open();
    REQUIRE(cuStreamSynchronize(apart) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  }
  CHECK(number == 2);
}

TEST_CASE("a context cannot wait for captured work, and the attempt invalidates the capture") {
  const CurrentContext context;
  const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  const CUevent inside = new_event(), outside = new_event();
  const CurrentContext other;
  REQUIRE(cuCtxSetCurrent(context.get()) == CUDA_SUCCESS);
  begin(stream);
  REQUIRE(cuEventRecord(inside, stream) == CUDA_SUCCESS);
  CHECK(cuCtxWaitEvent(other.get(), inside) == CUDA_ERROR_CAPTURED_EVENT);  // H100, H200, driver 580.159: 907
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(stream);
  CHECK(cuCtxWaitEvent(context.get(), outside) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(end_result(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  REQUIRE(cuCtxSetCurrent(other.get()) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
