// Captures of several threads, and looks at the device meanwhile.
#include <thread>

#include "catch.h"
#include "policy/captures.h"
#include "unit/policy/studio.h"
#include "unit/policy/turns.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a stream is not destroyed while another thread asks about it") {
  Studio studio;
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  std::thread destroying;
  std::atomic<bool> started{false};
  studio.driver.on_capture_info = [&] {
    studio.driver.on_capture_info = nullptr;
    destroying = std::thread([&] {
      started = true;
      studio.captures.forget(studio.stream);
      studio.driver.timeline.close_stream(studio.stream);
    });
    while (!started) {
      std::this_thread::yield();
    }
    yield_often();
  };
  studio.is_quiet();
  destroying.join();
  CHECK(studio.is_quiet());
  CHECK(studio.driver.timeline.dead_uses() == 0);
}

TEST_CASE("a begin waits for a look at the device, which no capture meets") {
  Studio studio;
  REQUIRE(studio.captures.enter());
  std::atomic<bool> begun{false};
  std::atomic<bool> started{false};
  std::thread capturing([&] {
    FakeDriver::current = studio.context->handle;
    started = true;
    studio.begin(studio.stream);
    begun = true;
  });
  while (!started) {
    std::this_thread::yield();
  }
  yield_often();
  CHECK_FALSE(begun);
  studio.captures.leave();
  capturing.join();
  CHECK(begun);
  CHECK_FALSE(studio.is_quiet());
}

TEST_CASE("a look at the device waits for a thread that is inside its begin") {
  for (const CUresult answer : {CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE}) {
    INFO(answer);
    Studio studio;
    studio.captures.begin_capture();
    CHECK(studio.captures.running());
    std::atomic<int> quiet{-1};
    std::atomic<bool> started{false};
    std::thread looking([&] {
      started = true;
      quiet = studio.is_quiet() ? 1 : 0;
    });
    while (!started) {
      std::this_thread::yield();
    }
    yield_often();
    CHECK(quiet == -1);
    if (answer == CUDA_SUCCESS) {
      REQUIRE(studio.driver.timeline.begin_capture(studio.stream, nullptr) == CUDA_SUCCESS);
    }
    studio.captures.finish_begin(studio.stream, answer, studio.context);
    looking.join();
    CHECK(quiet == (answer == CUDA_SUCCESS ? 0 : 1));
  }
}

TEST_CASE("a thread's own stream captures for as long as its thread lives, whatever others are told of theirs") {
  Studio studio;
  std::atomic<bool> begun{false};
  std::atomic<bool> looked{false};
  std::thread capturing([&] {
    FakeDriver::current = studio.context->handle;
    REQUIRE(studio.begin(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    begun = true;
    while (!looked) {
      std::this_thread::yield();
    }
  });
  while (!begun) {
    std::this_thread::yield();
  }
  CHECK_FALSE(studio.is_quiet());
  REQUIRE(studio.begin(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);  // another stream
  CHECK(studio.end(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  CHECK_FALSE(studio.is_quiet());
  looked = true;
  capturing.join();
  while (!studio.is_quiet()) {  // a thread that was joined may be a moment from gone
    std::this_thread::yield();
  }
}

TEST_CASE("whose capture it is that runs") {
  Studio studio;
  CHECK_FALSE(studio.captures.run_elsewhere_only());
  REQUIRE(studio.begin(studio.stream) == CUDA_SUCCESS);
  CHECK_FALSE(studio.captures.run_elsewhere_only());
  std::thread([&] { CHECK(studio.captures.run_elsewhere_only()); }).join();
}
