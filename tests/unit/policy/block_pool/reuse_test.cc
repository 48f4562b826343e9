// Blocks of a pool as the program sees them: freed, waited for, reused.
#include <random>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("an allocation that would be denied waits for what was freed, and says so in the log") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr first = program.take(kMiB);
  driver.timeline.submit(context);
  REQUIRE(program.free(first) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.early() == 0);
  const std::vector<json> lines = log_lines(folder / "log");
  const std::vector<json> waits = of_type(lines, "wait");
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].at("how") == "event");
  CHECK(waits[0].at("bytes") == kMiB);
  CHECK(waits[0].at("blocks") == 1);
  CHECK(sums_of(lines).one_owner_each);
}

TEST_CASE("an allocation waits for ever for a free that would have waited, and not for a stream-ordered one") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = program.create();
  const CUdeviceptr first = program.take(kMiB);
  driver.timeline.submit(context);  // which ends when a thread synchronises
  SECTION("of one alone") {
    REQUIRE(program.free_async(first) == CUDA_SUCCESS);
    CHECK(program.take(kWhole) == kUntouched);
    CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(driver.timeline.is_behind(driver.timeline.submitted()));
    CHECK(program.denied(events::Reason::pool_holds) == 1);
  }
  SECTION("of one beside a plain one") {
    const CUdeviceptr second = program.take(kMiB / 2);
    REQUIRE(program.free_async(first) == CUDA_SUCCESS);
    REQUIRE(program.free(second) == CUDA_SUCCESS);
    CHECK(program.take(kWhole) != kUntouched);
  }
  CHECK(program.early() == 0);
}

TEST_CASE("an error of the wait is returned by the allocation, and leaves the pointer alone") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = program.create();
  const CUdeviceptr first = program.take(kMiB);
  driver.timeline.submit(context);
  driver.fails = {{"cuCtxRecordEvent", CUDA_ERROR_ILLEGAL_ADDRESS}};
  CHECK(program.free(first) == CUDA_SUCCESS);
  for (const char *function : {"cuCtxRecordEvent", "cuEventQuery", "cuEventSynchronize"}) {
    INFO(function);
    driver.fails = {{function, CUDA_ERROR_ILLEGAL_ADDRESS}};
    CHECK(program.take(kWhole) == kUntouched);
    CHECK(program.last == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  CHECK(program.denied(events::Reason::limit) == 0);
  CHECK(program.tally().failed_allocs == 3);
  driver.fails.clear();
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.early() == 0);
}

TEST_CASE("a hit asks the driver for the current context and for nothing else") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  program.create();
  std::vector<CUdeviceptr> blocks = {program.take(512)};
  const int all = driver.calls();
  const int current = driver.calls("cuCtxGetCurrent");
  for (int hits = 0; hits < 100; ++hits) {
    blocks.push_back(program.take(512));
  }
  CHECK(driver.calls() - all == driver.calls("cuCtxGetCurrent") - current);
  const int before_frees = driver.calls();
  for (const CUdeviceptr block : blocks) {
    CHECK(program.free(block) == CUDA_SUCCESS);
  }
  CHECK(driver.calls() - before_frees <= 2 * static_cast<int>(blocks.size()));
  CHECK(driver.calls("cuCtxRecordEvent") + driver.calls("cuEventQuery") + driver.calls("cuMemFree_v2") == 0);
}

TEST_CASE("a synchronous free has waited for the work before it when it returns") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), "", mode_pool(true));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(kMiB);
  driver.timeline.submit(context);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK_FALSE(driver.timeline.is_behind(driver.timeline.submitted()));
  CHECK(program.tally().devices[0].waits == 1);
}

TEST_CASE("a synchronous free returns the error of the work that it waits for, and still frees the block") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), "", mode_pool(true));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(kMiB);
  driver.timeline.submit(context);
  driver.fails["cuEventSynchronize"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.free(address) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.tally().devices[0].frees == 1);
  driver.fails.clear();
  CHECK(program.free(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.early() == 0);
}

TEST_CASE("a stream-ordered free never waits, also with free=synchronous") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), "", mode_pool(true));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(kMiB);
  driver.timeline.submit(context);
  CHECK(program.free_async(address) == CUDA_SUCCESS);
  CHECK(driver.timeline.is_behind(driver.timeline.submitted()));
}

TEST_CASE("an address that starts no live block is refused by Ration and never forwarded") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  program.create();
  const CUdeviceptr address = program.take(4096);
  CHECK(program.free(address + 512) == CUDA_ERROR_INVALID_VALUE);  // inside it
  REQUIRE(driver.live_blocks() == 1);
  const CUdeviceptr slab = driver.live_addresses()[0];
  CHECK(program.free(slab + (slab == address ? 8192 : 0)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.free(slab + 4096) == CUDA_ERROR_INVALID_VALUE);  // a hole
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.free(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.free_async(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.calls("cuMemFree_v2") + driver.calls("cuMemFreeAsync") == 0);
  CHECK(program.tally().failed_frees == 5);
}

TEST_CASE("a free without a current context, or with an ended one, is refused as the driver does") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kSlab));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(4096);
  FakeDriver::current = nullptr;
  driver.fails["cuCtxGetDevice"] = CUDA_ERROR_INVALID_CONTEXT;
  CHECK(program.free(address) == CUDA_ERROR_INVALID_CONTEXT);
  driver.fails["cuCtxGetDevice"] = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  CHECK(program.free(address) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  driver.fails["cuCtxGetDevice"] = CUDA_ERROR_LAUNCH_FAILED;  // nothing that would keep the driver from freeing
  CHECK(program.free(address) == CUDA_SUCCESS);
  FakeDriver::current = context;
  CHECK(program.tally().devices[0].frees == 1);
}

TEST_CASE("random work, frees and allocations in several contexts never share a block too early") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  for (const bool events : {true, false}) {
    FakeDriver driver;
    if (!events) {
      driver::real.cuCtxRecordEvent.set(nullptr);
    }
    PooledProgram program(driver, limit_of(2 * kSlab));
    program.give_peer_access();
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<CUcontext> contexts = {program.create(), program.create(), program.create(1)};
    std::vector<CUdeviceptr> blocks;
    int taken_again = 0;
    int queries = 0;
    driver.on_query = [&] {
      if (++queries % 16 == 0) {  // the device goes on while the host waits for it
        for (const CUcontext context : contexts) {
          driver.timeline.finish(context);
        }
      }
    };
    for (int step = 0; step < 6000; ++step) {
      FakeDriver::current = contexts[below(contexts.size())];
      switch (below(8)) {
        case 0:
        case 1:
          driver.timeline.submit(FakeDriver::current);
          break;
        case 2:
          driver.timeline.finish(FakeDriver::current);
          break;
        case 3:
          if (below(10) == 0) {
            program.synchronise();
          }
          break;
        case 4:
        case 5:
          if (!blocks.empty()) {
            std::swap(blocks[below(blocks.size())], blocks.back());
            CHECK(program.free(blocks.back()) == CUDA_SUCCESS);
            blocks.pop_back();
          }
          break;
        default:
          if (const CUdeviceptr block = program.take(512 * (1 + below(800))); block != kUntouched) {
            blocks.push_back(block);
            ++taken_again;
          }
      }
      CHECK(driver.used(0) <= 2 * kSlab);
      CHECK(driver.used(1) <= 2 * kSlab);
    }
    CHECK(program.early() == 0);
    CHECK(taken_again > 500);
    CHECK(driver.timeline.dead_uses() == 0);
  }
}
