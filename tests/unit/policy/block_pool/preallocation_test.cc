// Preallocation by the first pool of a device: how much, when, and never twice.
#include <algorithm>
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

using Sizes = std::vector<std::uint64_t>;

namespace {

std::unique_ptr<TestLimits> plan(std::uint64_t limit, std::uint64_t bytes, std::uint64_t after = 0,
                                 std::uint64_t headroom = 0) {
  auto limits = limit_of(limit);
  limits->plan = {bytes, after, headroom};
  return limits;
}

}  // namespace

TEST_CASE("the first allocation takes the whole of the plan in one slab") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB), folder / "log");
  program.create();
  CHECK(program.take(1024) != kUntouched);
  CHECK(program.take(99 * kMiB) != kUntouched);
  CHECK(driver.asked() == Sizes{100 * kMiB});
  const std::vector<json> slabs = of_type(log_lines(folder / "log"), "slab_alloc");
  REQUIRE(slabs.size() == 1);
  CHECK(slabs[0].at("why") == "preallocate");
  CHECK(slabs[0].at("size") == 100 * kMiB);
}

TEST_CASE("a plan that is less than the limit is what is preallocated, and the rest grows") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 10 * kMiB));
  program.create();
  CHECK(program.take(1024) != kUntouched);
  CHECK(program.take(20 * kMiB) != kUntouched);
  REQUIRE(driver.asked().size() == 2);
  CHECK(driver.asked()[0] == 10 * kMiB);
}

TEST_CASE("without a plan nothing is preallocated") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 0));
  program.create();
  program.take(1024);
  CHECK(driver.asked() == Sizes{2 * kMiB});
}

TEST_CASE("a little live memory preallocates nothing, the request that reaches the threshold does") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB, 8 * kMiB));
  program.create();
  const CUdeviceptr kept = program.take(4 * kMiB);
  for (int round = 0; round < 20; ++round) {  // freed again: not live
    program.free(program.take(kMiB));
    program.synchronise();
  }
  CHECK(program.charged() < 50 * kMiB);
  CHECK(program.take(4 * kMiB) != kUntouched);
  CHECK(program.charged() == 100 * kMiB);
  CHECK(program.free(kept) == CUDA_SUCCESS);
}

TEST_CASE("what is held already counts towards the plan") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 50 * kMiB, 4 * kMiB));
  program.create();
  REQUIRE(program.take(kWhole) != kUntouched);
  REQUIRE(program.charged() == 2 * kMiB);
  CHECK(program.take(3 * kMiB) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB, 48 * kMiB});
}

TEST_CASE("before the large slab no small one is larger than the threshold") {
  FakeDriver driver;
  PooledProgram program(driver, plan(800 * kMiB, 800 * kMiB, 7 * kMiB));
  const CUcontext context = program.create();
  driver.timeline.submit(context);  // so that nothing freed is clean
  for (int round = 0; round < 60; ++round) {
    program.free(program.take(kMiB));
  }
  const Sizes asked = driver.asked();
  CHECK(asked.size() > 4);
  CHECK(*std::max_element(asked.begin(), asked.end()) == 7 * kMiB);  // in whole blocks
}

TEST_CASE("small slabs that are free go back for the large one, while nothing runs") {
  for (const bool running : {false, true}) {
    INFO(running);
    FakeDriver driver;
    PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB, 40 * kMiB));
    const CUcontext context = program.create();
    std::vector<CUdeviceptr> blocks;
    for (int block = 0; block < 13; ++block) {
      blocks.push_back(program.take(kMiB));
    }
    for (const CUdeviceptr block : blocks) {
      program.free(block);  // the last one seals
    }
    const std::uint64_t small = program.charged();
    if (running) {
      driver.timeline.submit(context);
    }
    CHECK(program.take(50 * kMiB) != kUntouched);
    CHECK(driver.asked().back() == 100 * kMiB - (running ? small : 0));
    CHECK((driver.calls("cuMemFree_v2") == 0) == running);
    CHECK(program.charged() == 100 * kMiB);
  }
}

TEST_CASE("preallocation leaves the headroom of the device's free memory alone") {
  FakeDriver driver;
  driver.taken_by_others = driver.total - 60 * kMiB;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB, 0, 10 * kMiB));
  program.create();
  program.take(1024);
  CHECK(driver.asked() == Sizes{50 * kMiB});
}

TEST_CASE("if the driver has less than it says, nine tenths are tried until it succeeds") {
  FakeDriver driver;
  driver.most_at_once = 70 * kMiB;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB));
  program.create();
  program.take(1024);
  const Sizes asked = driver.asked();
  REQUIRE(asked.size() == 5);
  CHECK(asked.front() == 100 * kMiB);
  CHECK(asked.back() <= 70 * kMiB);
  CHECK(asked.back() > 63 * kMiB);
  CHECK(program.charged() == asked.back());
}

TEST_CASE("if nothing of the plan can be had, the pool grows for the request as usual") {
  for (const CUresult error : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED}) {
    INFO(error);
    FakeDriver driver;
    driver.taken_by_others = driver.total - 10 * kMiB;
    PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB, 0, 9 * kMiB));
    program.create();
    CHECK(program.take(kWhole) != kUntouched);
    CHECK(driver.asked() == Sizes{2 * kMiB});
    driver.fails["cuMemAlloc_v2"] = error;
    CHECK(program.take(kWhole) == kUntouched);
    CHECK(program.last == error);
  }
}

TEST_CASE("a preallocation that the driver refuses for another reason is not tried again") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB));
  program.create();
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.take(1024) == kUntouched);
  CHECK(driver.asked().empty());
  CHECK(program.charged() == 0);
  driver.fails.clear();
  CHECK(program.take(1024) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB});
}

TEST_CASE("only the first context of each device preallocates") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 50 * kMiB, 4 * kMiB));
  const CUcontext first = program.create();
  program.take(1024);
  program.create();
  program.take(20 * kMiB);
  CHECK(program.charged() < 50 * kMiB);
  program.create(1);
  program.take(5 * kMiB);
  CHECK(program.charged(1) == 50 * kMiB);
  FakeDriver::current = first;
  program.take(4 * kMiB);
  CHECK(program.charged() >= 50 * kMiB);
}

TEST_CASE("a slab that was preallocated and given back is not preallocated again") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB));
  program.create();
  program.free(program.take(1024));
  const CUdeviceptr direct = program.take_direct(90 * kMiB);
  CHECK(direct != kUntouched);
  CHECK(program.free(direct) == CUDA_SUCCESS);
  CHECK(program.take(1024) != kUntouched);
  CHECK(program.charged() == 2 * kMiB);
}

TEST_CASE("after the first context ends the next one becomes the first") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB));
  for (int life = 0; life < 3; ++life) {
    const CUcontext context = program.create();
    program.take(1024);
    CHECK(program.charged() == 100 * kMiB);
    CHECK(program.destroy(context) == CUDA_SUCCESS);
    CHECK(program.charged() == 0);
  }
  CHECK(driver.asked() == Sizes(3, 100 * kMiB));
}

TEST_CASE("threads that race for the first allocation share one preallocation") {
  for (int round = 0; round < 20; ++round) {
    FakeDriver driver;
    PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB));
    const CUcontext context = program.create();
    std::atomic<int> served{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 6; ++thread) {
      threads.emplace_back([&] {
        FakeDriver::current = context;
        while (!go) {
          std::this_thread::yield();
        }
        served += program.take(10 * kMiB) != kUntouched ? 1 : 0;
      });
    }
    go = true;
    for (std::thread &thread : threads) {
      thread.join();
    }
    CHECK(served == 6);
    REQUIRE(driver.asked() == Sizes{100 * kMiB});
  }
}

TEST_CASE("a request that does not fit beside what was preallocated is denied for the limit") {
  FakeDriver driver;
  PooledProgram program(driver, plan(100 * kMiB, 100 * kMiB));
  program.create();
  CHECK(program.take(60 * kMiB) != kUntouched);
  CHECK(program.take(60 * kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::limit) == 1);
  CHECK(program.take(100 * kMiB) == kUntouched);
  CHECK(driver.used(0) == 100 * kMiB);
}
