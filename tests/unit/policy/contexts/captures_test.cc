// Captures and our queries of the device never overlap, and no capture counts as running for ever.
#include "policy/contexts/captures.h"

#include <thread>

#include "catch.h"
#include "unit/policy/capture_recorder.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("while a capture runs nothing is sealed, and after its end everything is") {
  CaptureRecorder recorder;
  recorder.free_one();
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  const policy::Quarantine::Cleaned cleaned = recorder.collect();
  CHECK(cleaned.capturing);
  CHECK(cleaned.blocks == 0);
  CHECK(cleaned.error == CUDA_SUCCESS);
  CHECK(recorder.wait().capturing);
  CHECK(recorder.quarantine.drain().capturing);
  CHECK(recorder.driver.calls("cuCtxRecordEvent") == 0);
  CHECK(recorder.captures.running());
  CHECK(recorder.end(recorder.stream) == CUDA_SUCCESS);
  CHECK_FALSE(recorder.captures.running());
  CHECK(recorder.collect().blocks == 1);
}

TEST_CASE("what was sealed before a capture is cleaned while it runs") {
  CaptureRecorder recorder;
  recorder.driver.timeline.submit(recorder.context->handle);
  recorder.free_one();
  recorder.collect();
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  recorder.driver.timeline.finish(recorder.context->handle);
  CHECK(recorder.collect().blocks == 1);
  CHECK(recorder.driver.timeline.spoilt() == 0);
}

TEST_CASE("no synchronise of ours overlaps a capture") {
  CaptureRecorder recorder;
  driver::real.cuCtxRecordEvent.set(nullptr);
  recorder.driver.timeline.submit(recorder.context->handle);
  recorder.free_one();
  recorder.collect();
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  CHECK(recorder.wait().capturing);
  CHECK(recorder.driver.calls("cuCtxSynchronize") == 0);
  CHECK(recorder.end(recorder.stream) == CUDA_SUCCESS);
  CHECK(recorder.wait().blocks == 1);
}

TEST_CASE("a capture that we did not see begin leaves everything in quarantine") {
  CaptureRecorder recorder;
  recorder.free_one();
  REQUIRE(recorder.driver.timeline.begin_capture(recorder.stream, nullptr) == CUDA_SUCCESS);
  CHECK(recorder.collect().capturing);
  CHECK(recorder.retired() == 1);
  recorder.driver.timeline.end_capture(recorder.stream);
  CHECK(recorder.collect().blocks == 1);
}

TEST_CASE("a begin that the driver refuses is no capture") {
  CaptureRecorder recorder;
  recorder.captures.begin_capture();
  recorder.captures.finish_begin(recorder.stream, CUDA_ERROR_ILLEGAL_STATE, recorder.context);
  CHECK_FALSE(recorder.captures.running());
  CHECK(recorder.is_quiet());
}

TEST_CASE("an end in the wrong thread is over when the driver says so") {
  for (const bool told : {true, false}) {
    INFO(told);
    CaptureRecorder recorder;
    if (!told) {
      driver::real.cuStreamGetCaptureInfo.set(nullptr);
      driver::real.cuStreamIsCapturing.set(nullptr);
    }
    REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
    std::thread([&] { CHECK(recorder.end(recorder.stream) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); }).join();
    CHECK(recorder.captures.running());
    CHECK(recorder.is_quiet() == told);
  }
}

TEST_CASE("an end in a stream that joined leaves the capture as it is, every other answer ends it") {
  CaptureRecorder recorder;
  driver::real.cuStreamGetCaptureInfo.set(nullptr);  // no other function says so
  driver::real.cuStreamIsCapturing.set(nullptr);
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  CHECK_FALSE(recorder.is_quiet());
  recorder.captures.finish_end(recorder.captures.number_of(recorder.stream, recorder.context),
                               CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK_FALSE(recorder.is_quiet());
  recorder.driver.timeline.spoil(recorder.stream);
  CHECK_FALSE(recorder.is_quiet());
  CHECK(recorder.end(recorder.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(recorder.is_quiet());
}

TEST_CASE("a capture that the driver reports as over is forgotten") {
  for (const bool newer : {true, false}) {
    INFO(newer);
    CaptureRecorder recorder;
    if (!newer) {
      driver::real.cuStreamGetCaptureInfo.set(nullptr);
    }
    REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
    CHECK_FALSE(recorder.is_quiet());
    recorder.driver.timeline.end_capture(recorder.stream);  // past Ration
    CHECK(recorder.is_quiet());
    CHECK_FALSE(recorder.captures.running());
  }
}

TEST_CASE("a capture that the driver does not report on counts as running") {
  CaptureRecorder recorder;
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  recorder.driver.fails["cuStreamGetCaptureInfo"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  CHECK_FALSE(recorder.is_quiet());
}

TEST_CASE("an invalidated capture still runs until it is ended") {
  CaptureRecorder recorder;
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  recorder.driver.timeline.spoil(recorder.stream);
  CHECK_FALSE(recorder.is_quiet());
  CHECK(recorder.end(recorder.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(recorder.is_quiet());
}

TEST_CASE("a stream that is destroyed captures no more and is not asked about") {
  CaptureRecorder recorder;
  const CUstream other = recorder.driver.timeline.open_stream(recorder.context->handle);
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  REQUIRE(recorder.begin(other) == CUDA_SUCCESS);
  recorder.captures.forget(recorder.stream);
  recorder.driver.timeline.close_stream(recorder.stream);
  CHECK_FALSE(recorder.is_quiet());
  CHECK(recorder.end(other) == CUDA_SUCCESS);
  CHECK(recorder.is_quiet());
  CHECK(recorder.driver.timeline.dead_uses() == 0);
}

TEST_CASE("the captures of a context end with it") {
  CaptureRecorder recorder;
  driver::real.cuStreamGetCaptureInfo.set(nullptr);
  driver::real.cuStreamIsCapturing.set(nullptr);
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  SECTION("whose end the driver reports") {
    recorder.destroy(recorder.context);
    CHECK(recorder.is_quiet());
  }
  SECTION("whose end Ration was called for") {
    recorder.captures.forget(recorder.context);
    CHECK(recorder.is_quiet());
  }
}

TEST_CASE("a capture that the host has no memory to remember runs for ever") {
  CaptureRecorder recorder;
  recorder.captures.begin_capture();
  allocations_left = 0;
  recorder.captures.finish_begin(recorder.stream, CUDA_SUCCESS, recorder.context);
  allocations_left = -1;
  CHECK(recorder.captures.running());
  CHECK_FALSE(recorder.captures.run_elsewhere_only());
  recorder.captures.finish_end(recorder.captures.number_of(recorder.stream, recorder.context), CUDA_SUCCESS);
  CHECK_FALSE(recorder.is_quiet());
}

TEST_CASE("a thread is in relaxed mode while we call the driver, and in its former mode afterwards") {
  FakeDriver driver;
  FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  {
    const policy::RelaxedCapture relaxed;
    CHECK(FakeTimeline::mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    const policy::RelaxedCapture again;
    CHECK(FakeTimeline::mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  CHECK(FakeTimeline::mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  driver.fails["cuThreadExchangeStreamCaptureMode"] = CUDA_ERROR_INVALID_VALUE;
  {
    const policy::RelaxedCapture refused;
    driver.fails.clear();
  }
  CHECK(FakeTimeline::mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}
