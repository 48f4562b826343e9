// Captures and our looks at the device are never at the same time, and no capture is thought to run for ever.
#include "policy/captures.h"

#include <thread>

#include "catch.h"
#include "unit/policy/studio.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("while a capture runs nothing is sealed, and after its end everything is") {
  Studio studio;
  studio.free_one();
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  const policy::Quarantine::Cleaned cleaned = studio.collect();
  CHECK(cleaned.capturing);
  CHECK(cleaned.blocks == 0);
  CHECK(cleaned.error == CUDA_SUCCESS);
  CHECK(studio.quarantine.wait().capturing);
  CHECK(studio.quarantine.drain().capturing);
  CHECK(studio.driver.calls("cuCtxRecordEvent") == 0);
  CHECK(studio.captures.running());
  CHECK(studio.end(studio.stream) == CUDA_SUCCESS);
  CHECK_FALSE(studio.captures.running());
  CHECK(studio.collect().blocks == 1);
}

TEST_CASE("what was sealed before a capture is cleaned while it runs") {
  Studio studio;
  studio.driver.timeline.submit(studio.context->handle);
  studio.free_one();
  studio.collect();
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  studio.driver.timeline.finish(studio.context->handle);
  CHECK(studio.collect().blocks == 1);
  CHECK(studio.driver.timeline.spoilt() == 0);
}

TEST_CASE("no synchronise of ours meets a capture") {
  Studio studio;
  driver::real.cuCtxRecordEvent.set(nullptr);
  studio.driver.timeline.submit(studio.context->handle);
  studio.free_one();
  studio.collect();
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  CHECK(studio.quarantine.wait().capturing);
  CHECK(studio.driver.calls("cuCtxSynchronize") == 0);
  CHECK(studio.end(studio.stream) == CUDA_SUCCESS);
  CHECK(studio.quarantine.wait().blocks == 1);
}

TEST_CASE("a capture that began behind our back leaves everything in quarantine") {
  Studio studio;
  studio.free_one();
  REQUIRE(studio.driver.timeline.begin_capture(studio.stream, nullptr) == CUDA_SUCCESS);
  CHECK(studio.collect().capturing);
  CHECK(studio.retired() == 1);
  studio.driver.timeline.end_capture(studio.stream);
  CHECK(studio.collect().blocks == 1);
}

TEST_CASE("a begin that the driver refuses is no capture") {
  Studio studio;
  studio.captures.begin_capture();
  studio.captures.finish_begin(studio.stream, CUDA_ERROR_ILLEGAL_STATE, studio.context);
  CHECK_FALSE(studio.captures.running());
  CHECK(studio.is_quiet());
}

TEST_CASE("an end in the wrong thread leaves the capture as it is, every other answer ends it") {
  Studio studio;
  driver::real.cuStreamGetCaptureInfo.set(nullptr);  // nobody else says so
  driver::real.cuStreamIsCapturing.set(nullptr);
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  std::thread([&] { CHECK(studio.end(studio.stream) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); }).join();
  CHECK_FALSE(studio.is_quiet());
  studio.captures.finish_end(studio.captures.number_of(studio.stream, studio.context),
                             CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK_FALSE(studio.is_quiet());
  studio.driver.timeline.spoil(studio.stream);
  CHECK_FALSE(studio.is_quiet());
  CHECK(studio.end(studio.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(studio.is_quiet());
}

TEST_CASE("the driver's word that a capture is over is enough") {
  for (const bool newer : {true, false}) {
    INFO(newer);
    Studio studio;
    if (!newer) {
      driver::real.cuStreamGetCaptureInfo.set(nullptr);
    }
    REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
    CHECK_FALSE(studio.is_quiet());
    studio.driver.timeline.end_capture(studio.stream);  // past Ration
    CHECK(studio.is_quiet());
    CHECK_FALSE(studio.captures.running());
  }
}

TEST_CASE("a capture that the driver says nothing of goes on") {
  Studio studio;
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  studio.driver.fails["cuStreamGetCaptureInfo"] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  CHECK_FALSE(studio.is_quiet());
}

TEST_CASE("an invalidated capture still runs until it is ended") {
  Studio studio;
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  studio.driver.timeline.spoil(studio.stream);
  CHECK_FALSE(studio.is_quiet());
  CHECK(studio.end(studio.stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(studio.is_quiet());
}

TEST_CASE("a stream that is destroyed captures no more and is not asked about") {
  Studio studio;
  const CUstream other = studio.driver.timeline.open_stream(studio.context->handle);
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  REQUIRE(studio.begin(other) == CUDA_SUCCESS);
  studio.captures.forget(studio.stream);
  studio.driver.timeline.close_stream(studio.stream);
  CHECK_FALSE(studio.is_quiet());
  CHECK(studio.end(other) == CUDA_SUCCESS);
  CHECK(studio.is_quiet());
  CHECK(studio.driver.timeline.dead_uses() == 0);
}

TEST_CASE("the captures of a context end with it") {
  Studio studio;
  driver::real.cuStreamGetCaptureInfo.set(nullptr);
  driver::real.cuStreamIsCapturing.set(nullptr);
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  SECTION("which says that it has gone") {
    studio.destroy(studio.context);
    CHECK(studio.is_quiet());
  }
  SECTION("whose end is told") {
    studio.captures.forget(studio.context);
    CHECK(studio.is_quiet());
  }
}

TEST_CASE("a capture that the host has no memory to remember runs for ever") {
  Studio studio;
  studio.captures.begin_capture();
  allocations_left = 0;
  studio.captures.finish_begin(studio.stream, CUDA_SUCCESS, studio.context);
  allocations_left = -1;
  CHECK(studio.captures.running());
  CHECK_FALSE(studio.captures.run_elsewhere_only());
  studio.captures.finish_end(studio.captures.number_of(studio.stream, studio.context), CUDA_SUCCESS);
  CHECK_FALSE(studio.is_quiet());
}

TEST_CASE("a thread is relaxed for as long as we call the driver, and then what it was before") {
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
