// Stream-ordered frees: the bytes stay charged until the device has really freed them.
#include <thread>

#include "base/clock.h"
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

namespace {

// A limit of 1,000 bytes, and a free of as many that its stream has not reached.
struct QueuedFree {
  explicit QueuedFree(const std::string &log = {}) : program(limit_of(1000), log) {
    program.create();
    driver.streams_wait = true;
    program.free_async(program.take(1000));
  }

  FakeDriver driver;
  Program program;
};

}  // namespace

TEST_CASE("a stream-ordered free that has passed at once releases its bytes at once") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  CHECK(program.free_async(program.take(1000)) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_events() == 0);
}

TEST_CASE("bytes stay charged until their stream passes, and are waited for before a request is denied") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  driver.streams_wait = true;
  CHECK(program.free_async(program.take(1000)) == CUDA_SUCCESS);
  CHECK(program.charged() == 1000);
  CHECK(driver.polls == 0);
  CHECK(program.take(1000) != kUntouched);
  CHECK(driver.polls == 1);
  CHECK(program.denied(events::Reason::limit) == 0);
  CHECK(driver.live_events() == 0);
}

TEST_CASE("a free that meets the end of its context in another thread releases its bytes") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  const CUdeviceptr block = program.take(1000);
  driver.streams_wait = true;
  driver.on_query = [&] {
    driver.on_query = nullptr;
    std::thread([&] { CHECK(program.destroy(context) == CUDA_SUCCESS); }).join();
  };
  CHECK(program.free_async(block) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("without an event, what another context's stream freed ends with the context of its block") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  const CUdeviceptr block = program.take(1000);
  program.create();
  driver.fails["cuEventCreate"] = CUDA_ERROR_INVALID_CONTEXT;
  CHECK(program.free_async(block) == CUDA_SUCCESS);
  CHECK(program.charged() == 1000);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a wait for queued frees is logged, a look is not") {
  const ScratchFolder folder;
  QueuedFree queued(folder / "log");
  auto &[driver, program] = queued;
  SECTION("which takes its time") {
    constexpr std::uint64_t kLong = 1'000'000;
    driver.during_wait = [] {
      for (const std::uint64_t start = now_ns(); now_ns() - start < kLong;) {
        std::this_thread::yield();
      }
    };
    CHECK(program.take(1000) != kUntouched);
    const std::vector<json> waits = of_type(log_lines(folder / "log"), "wait");
    REQUIRE(waits.size() == 1);
    CHECK(waits[0].at("api") == "cuMemAlloc_v2");
    CHECK(waits[0].at("bytes") == 1000);
    CHECK(waits[0].at("dur") >= kLong);
  }
  SECTION("which had passed by then") {
    driver.streams_wait = false;
    CHECK(program.take(1000) != kUntouched);
    CHECK(of_type(log_lines(folder / "log"), "wait").empty());
  }
}

TEST_CASE("a wait for queued frees ends, because what runs may wait for the call itself") {
  QueuedFree queued;
  auto &[driver, program] = queued;
  driver.keeps_waiting = true;
  CHECK(program.take(1000) == kUntouched);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.charged() == 1000);
  driver.keeps_waiting = false;
  driver.streams_wait = false;
  CHECK(program.take(1000) != kUntouched);
}

TEST_CASE("frees that have passed are released without a wait") {
  QueuedFree queued;
  auto &[driver, program] = queued;
  driver.streams_wait = false;
  CHECK(program.take(1000) != kUntouched);
  CHECK(driver.polls == 0);
}

TEST_CASE("if the frees that have passed do not suffice, the rest is waited for") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.create();
  const CUdeviceptr first = program.take(5120);
  const CUdeviceptr second = program.take(5120);
  driver.streams_wait = true;
  program.free_async(first);
  program.free_async(second);
  driver.next_passed = 1;
  CHECK(program.take(10240) != kUntouched);
  CHECK(driver.polls == 1);
}

TEST_CASE("a request that not even the pending frees could serve is denied without a wait") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.create();
  program.take(4096);
  driver.streams_wait = true;
  program.free_async(program.take(6144));
  CHECK(program.take(6145) == kUntouched);
  CHECK(driver.polls == 0);
  CHECK(program.charged() == 10240);
  CHECK(program.denied(events::Reason::limit) == 1);
}

TEST_CASE("a failed wait keeps the bytes charged until their context ends") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  driver.streams_wait = true;
  program.free_async(program.take(1000));
  driver.fails["cuEventQuery"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.take(1) == kUntouched);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.charged() == 1000);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("without events the bytes stay charged until their context ends") {
  FakeDriver driver;
  driver::real.cuEventQuery.set(nullptr);
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  CHECK(program.free_async(program.take(1000)) == CUDA_SUCCESS);
  CHECK(program.take(1) == kUntouched);
  CHECK(program.charged() == 1000);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("an event that cannot be recorded is destroyed and the bytes stay charged") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  driver.fails["cuEventRecord"] = CUDA_ERROR_INVALID_HANDLE;
  program.free_async(program.take(1000));
  CHECK(program.charged() == 1000);
  CHECK(driver.live_events() == 0);
}

TEST_CASE("a stream-ordered free that the driver refuses leaves the block alive") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  const CUdeviceptr address = program.take(1000);
  driver.fails["cuMemFreeAsync"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(program.free_async(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.free_async(0x1234) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 1000);
  CHECK(program.tally().failed_frees == 2);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a stream-ordered free of a foreign block changes no total") {
  FakeDriver driver;
  Program program;
  program.create();
  CUdeviceptr foreign = 0;
  REQUIRE(driver.allocate(&foreign, 10) == CUDA_SUCCESS);
  CHECK(program.free_async(foreign) == CUDA_SUCCESS);
  CHECK(program.tally().devices[0].frees == 0);
  CHECK(driver.calls("cuEventRecord") == 0);
}

TEST_CASE("the log has the free at once, with its stream") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(1000), folder / "log");
  program.create();
  driver.streams_wait = true;
  program.free_async(program.take(1000), CU_STREAM_PER_THREAD);
  const std::vector<json> frees = of_type(log_lines(folder / "log"), "free");
  REQUIRE(frees.size() == 1);
  CHECK(frees[0].at("api") == "cuMemFreeAsync");
  CHECK(frees[0].at("stream") == 2);
}

TEST_CASE("another device's pending frees are neither queried nor released") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext first = program.create(0);
  program.create(1);
  driver.streams_wait = true;
  program.free_async(program.take(1000));
  FakeDriver::current = first;
  program.take(1000);
  CHECK(program.take(1) == kUntouched);
  CHECK(driver.polls == 0);
  CHECK(program.charged(1) == 1000);
}

TEST_CASE("a context destroyed while its frees are waited for releases them once") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  const CUcontext other = program.create();
  FakeDriver::current = context;
  driver.streams_wait = true;
  program.free_async(program.take(1000));
  driver.during_wait = [&] { std::thread([&] { program.destroy(context); }).join(); };
  FakeDriver::current = other;
  CHECK(program.take(1000) != kUntouched);
  CHECK(program.take(1000) == kUntouched);
  CHECK(program.charged() == 1000);
}

TEST_CASE("a thread that finds another waiting for the device waits with it instead of being denied") {
  FakeDriver driver;
  Program program(limit_of(10240));
  const CUcontext context = program.create();
  driver.streams_wait = true;
  program.free_async(program.take(10240));
  CUdeviceptr second = kUntouched;
  std::thread other;
  driver.during_wait = [&] {
    driver.during_wait = nullptr;
    const int queries = driver.calls("cuCtxGetCurrent");
    other = std::thread([&] {
      FakeDriver::current = context;
      program.allocate(5120, &second);
    });
    while (driver.calls("cuCtxGetCurrent") == queries) {  // it is in allocate
      std::this_thread::yield();
    }
  };
  CHECK(program.take(5120) != kUntouched);
  other.join();
  CHECK(second != kUntouched);
  CHECK(program.denied(events::Reason::limit) == 0);
  CHECK(program.charged() == 10240);
}
