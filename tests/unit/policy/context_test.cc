// Contexts come and go, and take their blocks along.
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

TEST_CASE("a context that is destroyed takes its blocks along and no others") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(100'000), folder / "log");
  const CUcontext kept = program.create();
  program.take(1000);
  const CUcontext gone = program.create();
  for (int i = 0; i < 100; ++i) {  // more than a batch
    program.take(512);
  }
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  CHECK(program.charged() == 1000);
  FakeDriver::current = kept;
  CHECK(program.take(99'000) != kUntouched);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(sums_of(lines).one_owner_each);
  CHECK(sums_of(lines).frees == 100);
  CHECK(of_type(lines, "free").front().at("api") == "cuCtxDestroy_v2");
  CHECK(of_type(lines, "alloc").at(0).at("ctx") == 1);
  CHECK(of_type(lines, "alloc").at(1).at("ctx") == 2);
}

TEST_CASE("a destroy that fails leaves every block as it was") {
  FakeDriver driver;
  Program program(limit_of(10'000));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(1000);
  driver.fails["cuCtxDestroy_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(program.destroy(context) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 1000);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(program.tally().failed_frees == 0);
}

TEST_CASE("a context that Ration never saw is the driver's alone") {
  FakeDriver driver;
  Program program;
  CHECK(program.destroy(reinterpret_cast<CUcontext>(0x77)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.detach(reinterpret_cast<CUcontext>(0x77)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.release() == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.reset() == CUDA_SUCCESS);
}

TEST_CASE("a context is noted when it is first seen current, on its own device") {
  FakeDriver driver;
  Program program(limit_of(1000));
  CUcontext context = nullptr;
  REQUIRE(driver.create(&context, 1) == CUDA_SUCCESS);  // past Ration
  program.take(700);
  CHECK(program.charged(1) == 700);
  CHECK(program.charged(0) == 0);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
}

TEST_CASE("of a primary context only the last release ends the blocks") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.retain();
  program.retain();
  const CUdeviceptr address = program.take(600);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 600);
  CHECK(program.free(address) == CUDA_SUCCESS);
  program.take(500);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("where the driver does not tell whether a primary context lives the program's own count decides") {
  FakeDriver driver;
  driver::real.cuDevicePrimaryCtxGetState.set(nullptr);
  Program program(limit_of(1000));
  program.retain();
  program.retain();
  program.take(600);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 600);
  driver.fails["cuDevicePrimaryCtxRelease_v2"] = CUDA_ERROR_UNKNOWN;
  CHECK(program.release() == CUDA_ERROR_UNKNOWN);
  CHECK(program.charged() == 600);
  driver.fails.clear();
  program.retain();
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 600);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a reset ends every block of the primary context, and the next life starts with none") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.retain(1);
  program.take(1000);
  CHECK(program.reset(1) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
  program.retain(1);
  CHECK(program.take(1000) != kUntouched);
  CHECK(program.release(1) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
}

TEST_CASE("a created context that got the handle of a primary one is not taken for it") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext primary = program.retain();
  REQUIRE(program.release() == CUDA_SUCCESS);
  const CUcontext created = program.create();
  REQUIRE(created == primary);
  const CUdeviceptr address = program.take(600);
  CHECK(program.reset() == CUDA_SUCCESS);
  CHECK(driver.is_live(address));
  CHECK(program.charged() == 600);
}

TEST_CASE("a context is destroyed by the last detach, each attach counts") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  program.policy.context_attached(context);
  program.take(600);
  const auto not_last = [] { return CUDA_SUCCESS; };
  CHECK(program.policy.detach_context("cuCtxDetach", context, not_last) == CUDA_SUCCESS);
  CHECK(program.charged() == 600);
  CHECK(program.detach(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a detach that the driver refuses counts for nothing") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  program.policy.context_attached(context);
  program.take(600);
  const auto refused = [] { return CUDA_ERROR_INVALID_VALUE; };
  const auto not_last = [] { return CUDA_SUCCESS; };
  CHECK(program.policy.detach_context("cuCtxDetach", context, refused) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.policy.detach_context("cuCtxDetach", context, not_last) == CUDA_SUCCESS);
  CHECK(program.policy.detach_context("cuCtxDetach", context, refused) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 600);
  CHECK(program.detach(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a context destroyed while another thread allocates in it leaves nothing charged") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(1000), folder / "log");
  const CUcontext context = program.create();
  driver.after_alloc = [&] {
    driver.after_alloc = nullptr;
    elsewhere(nullptr, [&] { CHECK(program.destroy(context) == CUDA_SUCCESS); });
  };
  CHECK(program.take(600) != kUntouched);  // the driver said so
  CHECK(program.charged() == 0);
  CHECK(sums_of(log_lines(folder / "log")).allocs == 0);
}

TEST_CASE("a block entered while its context is being destroyed ends with it") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext context = program.create();
  program.take(100);
  driver.during_destroy = [&](CUcontext) { elsewhere(context, [&] { CHECK(program.take(600) != kUntouched); }); };
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("a free that meets the release of a context that lives on waits for it and succeeds") {
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

TEST_CASE("a block whose free fails because its context just went is not charged for ever") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(1000), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(600);
  const CUresult result = program.policy.free("cuMemFree_v2", address, [&] {
    elsewhere(nullptr, [&] { CHECK(program.destroy(context) == CUDA_SUCCESS); });
    return driver.free(address);
  });
  CHECK(result == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 0);
  const std::vector<json> frees = of_type(log_lines(folder / "log"), "free");
  REQUIRE(frees.size() == 1);
  CHECK(frees[0].at("api") == "cuCtxDestroy_v2");
}

TEST_CASE("a new context at the handle of one that is still being forgotten is held to the limit") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext first = program.create();
  CUcontext second = nullptr;
  driver.after_destroy = [&] {
    elsewhere(nullptr, [&] {
      second = program.create();
      CHECK(program.take(600) != kUntouched);
    });
  };
  CHECK(program.destroy(first) == CUDA_SUCCESS);
  REQUIRE(second == first);
  CHECK(program.charged() == 600);
  FakeDriver::current = second;
  CHECK(program.take(600) == kUntouched);
  driver.after_destroy = nullptr;
  CHECK(program.destroy(second) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("an address that a destroyed context freed is logged free before it is logged taken") {
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

TEST_CASE("threads that create, fill and destroy contexts leave nothing behind") {
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

TEST_CASE("a context's own memory counts where that was asked for, and comes back with it") {
  FakeDriver driver;
  driver.taken_by_others = 300;
  Program program(limit_of(1000), "", {true, true});
  const CUcontext context = program.create();
  CHECK(program.charged() == 300);
  CHECK(program.take(701) == kUntouched);
  CHECK(program.take(700) != kUntouched);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a primary context that is retained again is charged once") {
  FakeDriver driver;
  driver.taken_by_others = 300;
  Program program(limit_of(1000), "", {true, true});
  program.retain();
  driver.taken_by_others = 400;
  program.retain();
  CHECK(program.charged() == 300);
}

TEST_CASE("a context's own memory is not charged unless asked for") {
  FakeDriver driver;
  driver.taken_by_others = 300;
  Program program(limit_of(1000));
  program.create();
  CHECK(program.charged() == 0);
}
