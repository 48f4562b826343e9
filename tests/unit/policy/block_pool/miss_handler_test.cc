// How a pool grows: by how much, from where, and in which order before a request is denied.
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

using Sizes = std::vector<std::uint64_t>;

TEST_CASE("slabs start at 2 MiB and double, up to a sixteenth of the limit") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(256 * kMiB));
  program.create();
  while (driver.live_blocks() < 6) {
    REQUIRE(program.take(kMiB / 8) != kUntouched);
  }
  CHECK(driver.asked() == Sizes{2 * kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB, 16 * kMiB, 16 * kMiB});
}

TEST_CASE("a small block beside a large one leaves the rest of the limit to others") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(1024 * kMiB));
  program.create();
  CHECK(program.take(400 * kMiB) != kUntouched);
  CHECK(program.take(kMiB) != kUntouched);
  CHECK(program.take(550 * kMiB) != kUntouched);
}

TEST_CASE("a slab has room for the block that it is for, in steps of 2 MiB where many such blocks fit") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4096 * kMiB));
  program.create();
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.take(3 * kMiB + 1) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB, 4 * kMiB});
}

TEST_CASE("where few such blocks fit, slabs hold whole blocks and nothing is lost") {
  for (const std::uint64_t count : {1U, 3U, 7U, 10U, 64U, 65U, 300U, 1000U}) {
    INFO(count);
    FakeDriver driver;
    PooledProgram program(driver, limit_of(100 * kMiB));
    program.create();
    for (std::uint64_t taken = 0; taken < count; ++taken) {
      CHECK(program.take(100 * kMiB / count / 512 * 512) != kUntouched);
    }
  }
}

TEST_CASE("a slab takes what the limit leaves, in whole granules") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(5 * kMiB + 700));
  program.create();
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.take(kMiB + 512) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB, 2 * kMiB, kMiB + 512});
  CHECK(driver.used(0) <= 5 * kMiB + 700);
}

TEST_CASE("a slab takes what the device has") {
  FakeDriver driver;
  driver.taken_by_others = driver.total - 5 * kMiB;
  PooledProgram program(driver, std::make_unique<TestLimits>());
  program.create();
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB, 3 * kMiB});
}

TEST_CASE("a growing pool leaves the headroom alone unless a request needs it") {
  FakeDriver driver;
  driver.taken_by_others = driver.total - 8 * kMiB;
  auto limits = std::make_unique<TestLimits>();
  limits->plan.headroom = 4 * kMiB;
  PooledProgram program(driver, std::move(limits));
  program.create();
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.take(kMiB - 512) != kUntouched);
  CHECK(program.take(kMiB - 512) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB, 2 * kMiB});
  CHECK(program.take(3 * kMiB) != kUntouched);
  CHECK(driver.asked().back() == 4 * kMiB);
}

TEST_CASE("if the driver has less than it says, nine tenths are requested repeatedly") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(100 * kMiB));
  program.create();
  REQUIRE(program.take(kWhole) != kUntouched);
  driver.most_at_once = 3 * kMiB;
  CHECK(program.take(2 * kMiB) != kUntouched);
  const Sizes asked = driver.asked();
  REQUIRE(asked.size() == 5);
  CHECK(asked[1] == 4 * kMiB);
  for (std::size_t i = 2; i < asked.size(); ++i) {
    CHECK(asked[i] % 512 == 0);
    CHECK(asked[i] < asked[i - 1]);
    CHECK(asked[i] >= asked[i - 1] / 10 * 9 - 1024);
  }
  CHECK(asked.back() <= 3 * kMiB);
  CHECK(driver.used(0) == program.charged());
  driver.most_at_once = UINT64_MAX;
  CHECK(program.take(2 * kMiB) != kUntouched);
  CHECK(driver.asked().back() % kSlab == 0);
}

TEST_CASE("clean blocks are reused before the pool grows, and nothing is waited for while it can") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(256 * kMiB));
  const CUcontext context = program.create();
  // More than may lie about unasked-for.
  std::vector<CUdeviceptr> blocks;
  while (driver.live_blocks() < 4) {
    blocks.push_back(program.take(kMiB / 8));
  }
  blocks.push_back(program.take(15 * kMiB - 512));  // the others keep their slabs, which would be merged
  REQUIRE(driver.live_blocks() == 4);
  program.free(blocks.back());
  CHECK(program.take(14 * kMiB) != kUntouched);
  CHECK(driver.live_blocks() == 4);
  driver.timeline.submit(context);
  CHECK(program.take(14 * kMiB) != kUntouched);
  CHECK(driver.live_blocks() == 5);
  CHECK(driver.calls("cuEventSynchronize") == 0);
}

TEST_CASE("what fits to the last byte but in no whole granules comes from the driver") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB + 100));
  program.create();
  const CUdeviceptr address = program.take(4 * kMiB + 100);
  CHECK(address != kUntouched);
  CHECK(driver.is_live(address));
  CHECK(program.charged() == 4 * kMiB + 100);
  CHECK(program.take(512) == kUntouched);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a driver error other than out of memory is returned verbatim, without charge or retry") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB));
  program.create();
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.take(1024) == kUntouched);
  CHECK(program.last == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.charged() == 0);
  CHECK(driver.calls("cuMemAlloc_v2") == 1);
  CHECK(program.tally().failed_allocs == 1);
  CHECK(program.denied(events::Reason::device) == 0);
}

TEST_CASE("free memory is what the pool has, what is freed, and what the limit still leaves") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(kMiB);
  CHECK(program.free_bytes() == 3 * kMiB);
  driver.timeline.submit(context);
  program.free(address);
  CHECK(program.free_bytes() == 4 * kMiB);
  CHECK(program.memory().total_bytes == 4 * kMiB);
}

TEST_CASE("of contexts that race for the last slab exactly one gets it") {
  for (int round = 0; round < 300; ++round) {
    FakeDriver driver;
    PooledProgram program(driver, limit_of(kSlab));
    constexpr int kThreads = 3;
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    std::atomic<int> served{0};
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        program.create();
        ++ready;
        while (ready < kThreads) {
          std::this_thread::yield();
        }
        served += program.take(1024) != kUntouched ? 1 : 0;
      });
    }
    for (std::thread &thread : threads) {
      thread.join();
    }
    REQUIRE(served == 1);
    REQUIRE(driver.used(0) == kSlab);
  }
}

TEST_CASE("threads that race for the rest of the limit never exceed it") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(9 * kMiB));
  const CUcontext contexts[] = {program.create(), program.create()};
  std::vector<std::thread> threads;
  std::atomic<bool> held{true};
  std::atomic<int> refused{0};
  driver.after_alloc = [&] { held = held && driver.used(0) <= 9 * kMiB; };
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      FakeDriver::current = contexts[thread % 2];
      std::vector<CUdeviceptr> blocks;
      for (int round = 0; round < 300; ++round) {
        const CUdeviceptr address = program.take(static_cast<std::uint64_t>(100'000 * (1 + (round + thread) % 17)));
        driver.timeline.submit(FakeDriver::current);
        if (address != kUntouched) {
          blocks.push_back(address);
        }
        if (blocks.size() > 3 || address == kUntouched) {
          for (const CUdeviceptr block : blocks) {
            refused += program.free(block) == CUDA_SUCCESS ? 0 : 1;
          }
          blocks.clear();
        }
        driver.timeline.finish(FakeDriver::current);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(held);
  CHECK(refused == 0);
  CHECK(program.early() == 0);
  CHECK(program.charged() == driver.used(0));
  CHECK(program.tally().devices[0].reserved_peak_bytes <= 9 * kMiB);
}
