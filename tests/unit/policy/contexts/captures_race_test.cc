// Captures of several threads, and queries of the device meanwhile.
#include <thread>

#include "catch.h"
#include "policy/contexts/captures.h"
#include "unit/policy/capture_recorder.h"
#include "unit/policy/yield_often.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a stream is not destroyed while another thread asks about it") {
  CaptureRecorder recorder;
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  std::thread destroying;
  std::atomic<bool> started{false};
  recorder.driver.on_capture_info = [&] {
    recorder.driver.on_capture_info = nullptr;
    destroying = std::thread([&] {
      started = true;
      recorder.captures.forget(recorder.stream);
      recorder.driver.timeline.close_stream(recorder.stream);
    });
    while (!started) {
      std::this_thread::yield();
    }
    yield_often();
  };
  recorder.is_quiet();
  destroying.join();
  CHECK(recorder.is_quiet());
  CHECK(recorder.driver.timeline.dead_uses() == 0);
}

TEST_CASE("a begin-capture waits for a query of the device, so that the two never overlap") {
  CaptureRecorder recorder;
  REQUIRE(recorder.captures.enter());
  std::atomic<bool> begun{false};
  std::atomic<bool> started{false};
  std::thread capturing([&] {
    FakeDriver::current = recorder.context->handle;
    started = true;
    recorder.begin(recorder.stream);
    begun = true;
  });
  while (!started) {
    std::this_thread::yield();
  }
  yield_often();
  CHECK_FALSE(begun);
  recorder.captures.leave();
  capturing.join();
  CHECK(begun);
  CHECK_FALSE(recorder.is_quiet());
}

TEST_CASE("a query of the device waits for a thread inside its begin-capture call") {
  for (const CUresult answer : {CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE}) {
    INFO(answer);
    CaptureRecorder recorder;
    recorder.captures.begin_capture();
    CHECK(recorder.captures.running());
    std::atomic<int> quiet{-1};
    std::atomic<bool> started{false};
    std::thread looking([&] {
      started = true;
      quiet = recorder.is_quiet() ? 1 : 0;
    });
    while (!started) {
      std::this_thread::yield();
    }
    yield_often();
    CHECK(quiet == -1);
    if (answer == CUDA_SUCCESS) {
      REQUIRE(recorder.driver.timeline.begin_capture(recorder.stream, nullptr) == CUDA_SUCCESS);
    }
    recorder.captures.finish_begin(recorder.stream, answer, recorder.context);
    looking.join();
    CHECK(quiet == (answer == CUDA_SUCCESS ? 0 : 1));
  }
}

TEST_CASE("a per-thread stream captures as long as its thread lives, whatever others learn of theirs") {
  CaptureRecorder recorder;
  std::atomic<bool> begun{false};
  std::atomic<bool> looked{false};
  std::thread capturing([&] {
    FakeDriver::current = recorder.context->handle;
    REQUIRE(recorder.begin(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    begun = true;
    while (!looked) {
      std::this_thread::yield();
    }
  });
  while (!begun) {
    std::this_thread::yield();
  }
  CHECK_FALSE(recorder.is_quiet());
  REQUIRE(recorder.begin(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);  // another stream
  CHECK(recorder.end(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  CHECK_FALSE(recorder.is_quiet());
  looked = true;
  capturing.join();
  while (!recorder.is_quiet()) {  // a thread that was joined may not be gone yet
    std::this_thread::yield();
  }
}

TEST_CASE("captures of other threads are distinguished from those of this thread") {
  CaptureRecorder recorder;
  CHECK_FALSE(recorder.captures.run_elsewhere_only());
  REQUIRE(recorder.begin(recorder.stream) == CUDA_SUCCESS);
  CHECK_FALSE(recorder.captures.run_elsewhere_only());
  std::thread([&] { CHECK(recorder.captures.run_elsewhere_only()); }).join();
}
