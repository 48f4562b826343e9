// Contexts that end while other threads work in them.
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

namespace {

// Runs `body` on a thread of its own that has `context` current, to its end.
template <class Body>
void elsewhere(CUcontext context, const Body &body) {
  std::thread([&] {
    FakeDriver::current = context;
    body();
  }).join();
}

}  // namespace

TEST_CASE("a context destroyed while another thread allocates in it leaves nothing charged") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(10240), folder / "log");
  const CUcontext context = program.create();
  driver.after_alloc = [&] {
    driver.after_alloc = nullptr;
    elsewhere(nullptr, [&] { CHECK(program.destroy(context) == CUDA_SUCCESS); });
  };
  CHECK(program.take(6144) != kUntouched);  // the driver said so
  CHECK(program.charged() == 0);
  CHECK(sums_of(log_lines(folder / "log")).allocs == 0);
}

TEST_CASE("a block entered while its context is being destroyed ends with it") {
  FakeDriver driver;
  Program program(limit_of(10240));
  const CUcontext context = program.create();
  program.take(1024);
  driver.during_destroy = [&](CUcontext) { elsewhere(context, [&] { CHECK(program.take(6144) != kUntouched); }); };
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("a free during the release of a context that survives waits and succeeds") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.retain();
  program.retain();
  const CUdeviceptr address = program.take(600);
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
  CHECK(program.charged() == 0);
  CHECK(program.tally().failed_frees == 0);
}

TEST_CASE("a block whose free fails because its context just ended is not charged for ever") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(1000), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(600);
  const CUresult result = program.parts.device_memory.free("cuMemFree_v2", address, [&] {
    elsewhere(nullptr, [&] { CHECK(program.destroy(context) == CUDA_SUCCESS); });
    return driver.free(address);
  });
  CHECK(result == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 0);
  const std::vector<json> frees = of_type(log_lines(folder / "log"), "free");
  REQUIRE(frees.size() == 1);
  CHECK(frees[0].at("api") == "cuCtxDestroy_v2");
}

TEST_CASE("a new context with the handle of one that is still being forgotten is held to the limit") {
  FakeDriver driver;
  Program program(limit_of(10240));
  const CUcontext first = program.create();
  CUcontext second = nullptr;
  driver.after_destroy = [&] {
    elsewhere(nullptr, [&] {
      second = program.create();
      CHECK(program.take(6144) != kUntouched);
    });
  };
  CHECK(program.destroy(first) == CUDA_SUCCESS);
  REQUIRE(second == first);
  CHECK(program.charged() == 6144);
  FakeDriver::current = second;
  CHECK(program.take(6144) == kUntouched);
  driver.after_destroy = nullptr;
  CHECK(program.destroy(second) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("an address of a destroyed context is logged as freed before it is logged as allocated") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(10'000), folder / "log");
  const CUcontext kept = program.create();
  const CUcontext gone = program.create();
  const CUdeviceptr address = program.take(4096);
  std::thread next_owner;
  CUdeviceptr again = kUntouched;
  driver.after_destroy = [&] {
    std::atomic<bool> has_it{false};
    driver.after_alloc = [&] { has_it = true; };
    next_owner = std::thread([&] {
      FakeDriver::current = kept;
      program.allocate(4096, &again);
    });
    while (!has_it) {
      std::this_thread::yield();
    }
  };
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  next_owner.join();
  CHECK(again == address);
  CHECK(program.charged() == 4096);
  CHECK(sums_of(log_lines(folder / "log")).one_owner_each);
}

TEST_CASE("threads that create, fill and destroy contexts leave nothing charged") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(50'000), folder / "log");
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 40; ++round) {
        const CUcontext context = program.create(static_cast<int>(thread) % 2);
        for (int block = 0; block < 5; ++block) {
          CUdeviceptr address = kUntouched;
          if (program.allocate(512, &address) == CUDA_SUCCESS && block % 2 == 0) {
            program.free(address);
          }
        }
        program.destroy(context);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(program.charged(0) == 0);
  CHECK(program.charged(1) == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  CHECK(sums_of(lines).one_owner_each);
  CHECK(sums_of(lines).allocs == sums_of(lines).frees);
}
