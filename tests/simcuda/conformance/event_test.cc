// Events.
#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("an event is complete when the work before it is complete") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  const CUevent event = new_event();
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);  // never recorded
  Gate gate;
  gate.hold(stream);
  REQUIRE(cuEventRecord(event, stream) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);
}

TEST_CASE("an event in the legacy default stream follows the work of blocking streams") {
  const CurrentContext context;
  const CUstream blocking = new_stream();
  const CUevent event = new_event();
  Gate gate;
  gate.hold(blocking);
  REQUIRE(cuEventRecord(event, nullptr) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
}

TEST_CASE("elapsed time is available once both events are complete") {
  const CurrentContext context;
  const CUstream stream = new_stream();
  const CUevent start = new_event(), end = new_event(), silent = new_event(CU_EVENT_DISABLE_TIMING);
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
  Gate gate;
  REQUIRE(cuEventRecord(start, stream) == CUDA_SUCCESS);
  gate.hold(stream);
  REQUIRE(cuEventRecord(end, stream) == CUDA_SUCCESS);
  REQUIRE(cuEventRecord(silent, stream) == CUDA_SUCCESS);
  CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_NOT_READY);
  gate.open();
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  REQUIRE(cuEventElapsedTime(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 0);
  CHECK(cuEventElapsedTime(&milliseconds, start, silent) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an event of one context cannot be recorded in a stream of another") {
  const CurrentContext first;
  const CUevent event = new_event();
  const CurrentContext second;
  CHECK(cuEventRecord(event, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a destroyed event's handle is invalid") {
  const CurrentContext context;
  const CUevent event = new_event();
  REQUIRE(cuEventDestroy(event) == CUDA_SUCCESS);
  if (!simulator()) return;  // a real driver may crash on a dead handle
  CHECK(cuEventQuery(event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventDestroy(event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventCreate(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace simcuda::conformance
