// Hits of a whole program without a log: they must not differ from calls on the slow path.
#include <thread>

#include "catch.h"
#include "unit/policy/host_memory.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

// A context whose pool has a slab and serves hits.
CUcontext warm(Program &program) {
  const CUcontext context = program.create();
  for (int blocks = 0; blocks < 2; ++blocks) {
    REQUIRE(program.free(program.take(512)) == CUDA_SUCCESS);
  }
  return context;
}

void stay_in(CUcontext context) {
  FakeDriver::current = context;
  FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

// Several threads may allocate, also while their context ends, after which a free is refused.
struct Unwatched : Program {
  using Program::Program;
  CUdeviceptr take(std::uint64_t bytes) {
    CUdeviceptr address = kUntouched;
    (void)allocate(bytes, &address);
    return address;
  }
};

// What threads on the fast path do to a program's blocks until they are stopped or their context has ended.
template <class Kind>
struct Hitters {
  Hitters(Kind &in, FakeDriver &driver, CUcontext context, unsigned count) : program(in) {
    for (unsigned thread = 0; thread < count; ++thread) {
      threads.emplace_back([this, &driver, context, thread] {
        stay_in(context);
        for (unsigned round = thread; !stop; ++round) {
          const CUdeviceptr address = program.take(512 * (1 + round % 7));
          if (address == kUntouched) {
            ++refused;
            continue;
          }
          driver.timeline.submit(context);
          refused += program.free(address) == CUDA_SUCCESS ? 0 : 1;
          if (round % 16 == 0) {
            driver.timeline.finish(context);
          }
          ++pairs;
        }
      });
    }
  }
  void wait_for(int more) const {
    for (const int until = pairs + more; pairs < until;) {
      std::this_thread::yield();
    }
  }
  void join() {
    stop = true;
    for (std::thread &thread : threads) {
      thread.join();
    }
  }

  Kind &program;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  std::atomic<int> pairs{0};
  std::atomic<int> refused{0};
};

}  // namespace

TEST_CASE("totals and the reported free memory are exact after every hit") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = warm(program);
  driver.timeline.submit(context);
  const std::uint64_t free_before = program.free_bytes();
  const events::DeviceTally &tally = program.tally().devices[0];
  const CUdeviceptr one = program.take(1000);
  const CUdeviceptr two = program.take(3 * 512);
  CHECK(program.free_bytes() == free_before - 5 * 512);
  CHECK(tally.live_bytes == 5 * 512);
  CHECK(program.free(one) == CUDA_SUCCESS);
  CHECK(program.free_bytes() == free_before - 3 * 512);
  CHECK(program.free(two) == CUDA_SUCCESS);
  CHECK(program.free_bytes() == free_before);
  CHECK(tally.live_bytes == 0);
  CHECK(tally.peak_bytes == 5 * 512);
  CHECK(tally.allocs == 4);
  CHECK(tally.frees == 4);
  CHECK(program.free(two) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.tally().failed_frees == 1);
}

TEST_CASE("a block can be freed from a thread of another context, and not from one without a context") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(2 * kSlab));
  const CUcontext context = warm(program);
  const CUdeviceptr blocks[] = {program.take(512), program.take(512)};
  const CUcontext other = warm(program);
  CHECK(program.free(blocks[0]) == CUDA_SUCCESS);
  CHECK(program.free(blocks[0]) == CUDA_ERROR_INVALID_VALUE);
  driver.fails["cuCtxGetDevice"] = CUDA_ERROR_INVALID_CONTEXT;
  FakeDriver::current = nullptr;
  CHECK(program.free(blocks[1]) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.destroy(other) == CUDA_SUCCESS);
  driver.fails["cuCtxGetDevice"] = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  FakeDriver::current = other;
  CHECK(program.free(blocks[1]) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  FakeDriver::current = context;
  CHECK(program.free(blocks[1]) == CUDA_SUCCESS);
  CHECK(program.tally().devices[0].live_bytes == 0);
}

TEST_CASE("a handle that now means another context leads to no block of its former owner") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kSlab));
  program.retain();
  const CUcontext context = warm(program);
  REQUIRE(driver.destroy(context) == CUDA_SUCCESS);  // in a way that we do not see
  SECTION("one that was created") {
    REQUIRE(program.create() == context);
  }
  SECTION("a green one") {
    program.parts.context_life.green_converted(context, program.create_green());
    FakeDriver::current = context;
  }
  const int slabs = driver.calls("cuMemAlloc_v2");
  program.take(512);
  CHECK(driver.calls("cuMemAlloc_v2") > slabs);
}

TEST_CASE("a context that turns out to have ended serves no hit") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kSlab));
  const CUcontext other = warm(program);
  const CUcontext context = warm(program);
  REQUIRE(driver.destroy(context) == CUDA_SUCCESS);  // in a way that we do not see
  FakeDriver::current = other;
  program.take(8 * kSlab);  // collects everything
  FakeDriver::current = context;
  CHECK(program.take(512) == kUntouched);
  FakeDriver::current = other;
  CHECK(program.take(512) != kUntouched);
}

TEST_CASE("until the use reaches the preallocation's threshold calls are hits, and so they are after it") {
  FakeDriver driver;
  auto limits = limit_of(100 * kMiB);
  limits->plan.bytes = 100 * kMiB;
  limits->plan.after = 8 * kMiB;
  PooledProgram program(driver, std::move(limits));
  warm(program);
  const auto pair = [&](std::uint64_t bytes) {
    const int before = driver.calls("cuCtxGetCurrent");
    REQUIRE(program.free(program.take(bytes)) == CUDA_SUCCESS);
    return driver.calls("cuCtxGetCurrent") - before;
  };
  CHECK(pair(512) == 2);  // one for each call: what is no hit asks more
  const CUdeviceptr kept = program.take(kMiB);
  CHECK(pair(512) == 2);
  CHECK(program.charged() < 8 * kMiB);
  const CUdeviceptr reached = program.take(7 * kMiB);
  CHECK(program.charged() == 100 * kMiB);
  CHECK(pair(512) == 2);
  CHECK(program.free(kept) == CUDA_SUCCESS);
  CHECK(program.free(reached) == CUDA_SUCCESS);
}

TEST_CASE("a hit does not reach the preallocation's threshold, though the pool has room") {
  FakeDriver driver;
  auto limits = limit_of(100 * kMiB);
  limits->plan.bytes = 100 * kMiB;
  limits->plan.after = 8 * kMiB;
  PooledProgram program(driver, std::move(limits));
  warm(program);
  for (int block = 0; block < 2; ++block) {  // room for more than the threshold
    REQUIRE(program.free(program.take(7 * kMiB)) == CUDA_SUCCESS);
  }
  program.synchronise();
  REQUIRE(program.take(4 * kMiB) != kUntouched);
  REQUIRE(program.charged() < 100 * kMiB);
  CHECK(program.take(4 * kMiB) != kUntouched);
  CHECK(program.charged() == 100 * kMiB);
}

TEST_CASE("a pool that served hits preallocates after the device's first context has ended") {
  FakeDriver driver;
  auto limits = limit_of(16 * kMiB);
  limits->plan.bytes = 8 * kMiB;
  PooledProgram program(driver, std::move(limits));
  const CUcontext first = warm(program);
  const CUcontext second = warm(program);
  CHECK(program.destroy(first) == CUDA_SUCCESS);
  FakeDriver::current = second;
  const int slabs = driver.calls("cuMemAlloc_v2");
  CHECK(program.take(512) != kUntouched);
  CHECK(driver.calls("cuMemAlloc_v2") == slabs + 1);
}

TEST_CASE(
    "hits of several threads, while a context that lives on is released and others come and go, corrupt nothing") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(40 * kMiB));
  const CUcontext context = program.retain();
  program.retain();
  Hitters hitters(program, driver, context, 3);
  std::atomic<int> kept{0};
  std::thread others([&] {
    stay_in(nullptr);
    for (int life = 0; life < 100; ++life) {
      const CUcontext mine = program.create();
      FakeDriver::current = mine;
      for (std::uint64_t block = 0; block < 8; ++block) {
        const CUdeviceptr address = program.take(100'000 * (1 + block % 3));
        driver.timeline.submit(mine);
        if (block % 3 != 0) {
          program.free(address);
        }
      }
      kept += program.destroy(mine) == CUDA_SUCCESS ? 0 : 1;
    }
  });
  for (int release = 0; release < 100; ++release) {
    CHECK(program.release() == CUDA_SUCCESS);
    hitters.wait_for(20);
    program.retain();
    program.free_bytes();
  }
  others.join();
  hitters.join();
  CHECK(hitters.refused == 0);
  CHECK(kept == 0);
  CHECK(program.early() == 0);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.release() == CUDA_SUCCESS);
  const events::DeviceTally &tally = program.tally().devices[0];
  CHECK(tally.live_bytes == 0);
  CHECK(tally.allocs == tally.frees);
  CHECK(tally.peak_bytes <= 40 * kMiB);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
  CHECK(driver.timeline.dead_uses() == 0);
}

TEST_CASE("a context that ends during hits ends every block with it and leaves exact totals") {
  FakeDriver driver;
  Unwatched program(limit_of(40 * kMiB), "", mode_pool());
  for (int life = 0; life < 30; ++life) {
    const CUcontext context = warm(program);
    Hitters hitters(program, driver, context, 2);
    hitters.wait_for(50);
    CHECK(program.destroy(context) == CUDA_SUCCESS);
    hitters.join();
    const events::DeviceTally &tally = program.tally().devices[0];
    CHECK(tally.live_bytes == 0);
    CHECK(tally.allocs == tally.frees);
    CHECK(tally.peak_bytes <= kSlab);
    CHECK(program.charged() == 0);
  }
  CHECK(driver.timeline.dead_uses() == 0);
}

TEST_CASE("a context that ends while the host has no memory gives all of its bytes back") {
  FakeDriver driver;
  Program program(limit_of(40 * kMiB), "", mode_pool());
  const CUcontext context = warm(program);
  stay_in(context);
  REQUIRE(program.free(program.take(512)) == CUDA_SUCCESS);
  allocations_left = 0;
  const CUresult destroyed = program.destroy(context);
  allocations_left = -1;
  CHECK(destroyed == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(program.tally().devices[0].reserved_bytes == 0);
}
