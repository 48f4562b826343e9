// Pools of contexts that end while other threads use them.
#include <functional>
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"
#include "unit/policy/yield_often.h"

using namespace ration;
using namespace ration::test;

namespace {

std::function<void()> at_the_caller;  // called between the look at what is current and the pool

}  // namespace

TEST_CASE("an address that the driver reuses belongs to its new pool, and the log has the records in order") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB), folder / "log");
  const CUcontext kept = program.create();
  const CUcontext gone = program.create();
  const CUdeviceptr address = program.take(1024);
  std::thread next_owner;
  CUdeviceptr again = kUntouched;
  driver.after_destroy = [&] {
    std::atomic<bool> has_it{false};
    driver.after_alloc = [&] { has_it = true; };
    next_owner = std::thread([&] {
      FakeDriver::current = kept;
      again = program.take(1024);
    });
    while (!has_it) {
      std::this_thread::yield();
    }
  };
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  next_owner.join();
  CHECK(again == address);
  CHECK(program.charged() == 2 * kMiB);
  FakeDriver::current = kept;
  CHECK(program.free(address) == CUDA_SUCCESS);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(sums_of(lines).one_owner_each);
  CHECK(sums_of(lines).reserved.at(0) == 2 * kMiB);
  CHECK(sums_of(lines).reserved_peak.at(0) == 2 * kMiB);
}

TEST_CASE("a block taken while its context is being destroyed ends with it, and later ones are refused") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(20 * kMiB), folder / "log");
  const CUcontext context = program.create();
  program.take(1024);
  driver.during_destroy = [&](CUcontext) {
    on_a_thread(context, [&] {
      CHECK(program.take(1024) != kUntouched);      // a hit
      CHECK(program.take(5 * kMiB) != kUntouched);  // a slab
    });
  };
  driver.after_destroy = [&] {
    on_a_thread(context, [&] {
      CHECK(program.take(10 * kMiB) == kUntouched);
      CHECK(program.last == CUDA_ERROR_INVALID_CONTEXT);  // the driver's word
    });
  };
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  const Sums sums = sums_of(log_lines(folder / "log"));
  CHECK(sums.one_owner_each);
  CHECK(sums.live.at(0) == 0);
  CHECK(sums.reserved.at(0) == 0);
}

TEST_CASE("a context that ended before its pool is reached takes no slab, even if its handle is reused") {
  const ScratchFolder folder;
  FakeDriver driver;
  auto limits = limit_of(20 * kMiB);
  limits->plan.bytes = 20 * kMiB;
  PooledProgram program(driver, std::move(limits), folder / "log");
  const CUcontext context = program.create();
  program.parts.books.set_via([](const void *) {
    at_the_caller();
    return events::Via::driver;
  });
  at_the_caller = [&] {
    CHECK(program.destroy(context) == CUDA_SUCCESS);
    CHECK(program.create() == context);
  };
  CHECK(program.take(1024) == kUntouched);
  CHECK(program.last == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(program.charged() == 0);
  CHECK(driver.asked().empty());
  at_the_caller = [] {};
  CHECK(program.take(1024) != kUntouched);
}

TEST_CASE("a context whose pool is growing ends after the new slab is in the books") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), folder / "log");
  const CUcontext context = program.create();
  std::thread destroying;
  std::atomic<bool> gone{false};
  driver.after_alloc = [&] {
    driver.after_alloc = nullptr;
    std::atomic<bool> in_driver{false};
    driver.after_destroy = [&] { in_driver = true; };
    destroying = std::thread([&] {
      CHECK(program.destroy(context) == CUDA_SUCCESS);
      gone = true;
    });
    while (!in_driver) {
      std::this_thread::yield();
    }
    driver.after_destroy = nullptr;
    yield_often();
    CHECK_FALSE(gone);
  };
  program.take(1024);
  destroying.join();
  CHECK(program.charged() == 0);
  const Sums sums = sums_of(log_lines(folder / "log"));
  CHECK(sums.one_owner_each);
  CHECK(sums.allocs == sums.frees);
  CHECK((sums.reserved.count(0) == 0 || sums.reserved.at(0) == 0));  // gone before it was entered, or entered and gone
}

TEST_CASE("a free of a pool's block during the release of a context that survives waits and succeeds") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = program.retain();
  program.retain();
  const CUdeviceptr address = program.take(1024);
  std::atomic<bool> released{false};
  CUresult freed = CUDA_ERROR_UNKNOWN;
  bool too_early = true;
  std::thread freeing;
  driver.during_destroy = [&](CUcontext) {
    std::atomic<bool> started{false};
    freeing = std::thread([&] {
      FakeDriver::current = context;
      started = true;
      freed = program.free(address);
      too_early = !released;
    });
    while (!started) {
      std::this_thread::yield();
    }
    released = true;
  };
  CHECK(program.release() == CUDA_SUCCESS);
  freeing.join();
  CHECK(freed == CUDA_SUCCESS);
  CHECK_FALSE(too_early);
  CHECK(program.tally().failed_frees == 0);
}

TEST_CASE("threads that create, fill and destroy contexts with pools leave nothing charged") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(40 * kMiB), folder / "log");
  program.give_peer_access();
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (unsigned thread = 0; thread < 5; ++thread) {
    threads.emplace_back([&, thread] {
      FakeTimeline::mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
      for (int round = 0; round < 60; ++round) {
        const CUcontext context = program.create(static_cast<int>(thread) % 2);
        for (std::uint64_t block = 0; block < 12; ++block) {
          const CUdeviceptr address = program.take(300'000 * (1 + block % 3));
          driver.timeline.submit(context);
          if (address != kUntouched && block % 3 != 0) {
            refused += program.free(address) == CUDA_SUCCESS ? 0 : 1;
          }
          if (block % 4 == 0) {
            driver.timeline.finish(context);
          }
        }
        refused += program.destroy(context) == CUDA_SUCCESS ? 0 : 1;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(refused == 0);
  CHECK(program.charged(0) == 0);
  CHECK(program.charged(1) == 0);
  CHECK(driver.live_blocks() == 0);
  CHECK(driver.timeline.dead_uses() == 0);
  CHECK(program.early() == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  const Sums sums = sums_of(lines);
  CHECK(is_consecutive(lines));
  CHECK(sums.one_owner_each);
  CHECK(sums.allocs == sums.frees);
  CHECK(sums.reserved_peak.at(0) <= 40 * kMiB);
  CHECK(sums.reserved.at(0) == 0);
  CHECK(sums.reserved.at(1) == 0);
}
