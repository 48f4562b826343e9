// Pools of contexts that are created and end: what the log says of them, what is charged, and which calls still work.
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a destroyed context ends its blocks, then its slabs, all recorded under the name of that call") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(20 * kMiB), folder / "log");
  const CUcontext kept = program.create();
  program.take(1024);
  const CUcontext gone = program.create();
  for (int block = 0; block < 40; ++block) {  // more than are asked for at once
    program.take(100'000);
  }
  program.free(program.take(1024));  // still in quarantine
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  CHECK(program.charged() == 2 * kMiB);
  CHECK(driver.live_blocks() == 1);
  const std::vector<json> lines = log_lines(folder / "log");
  const Sums sums = sums_of(lines);
  CHECK(sums.one_owner_each);
  CHECK(sums.allocs == 42);
  CHECK(sums.frees == 41);
  CHECK(sums.live.at(0) == 1024);
  CHECK(sums.reserved.at(0) == 2 * kMiB);
  bool slab_gone = false;
  for (const json &line : lines) {
    if (line.at("t") == "slab_free") {
      slab_gone = true;
      CHECK(line.at("api") == "cuCtxDestroy_v2");
      CHECK(line.at("ctx") == 2);
    }
    CHECK_FALSE((slab_gone && line.at("t") == "free"));
  }
  CHECK(slab_gone);
  CHECK(of_type(lines, "free").back().at("api") == "cuCtxDestroy_v2");
  FakeDriver::current = kept;
  CHECK(program.take(1024) != kUntouched);
}

TEST_CASE("a destroy that the driver refuses leaves the pool as it was") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(1024);
  driver.timeline.submit(context);
  program.free(program.take(kMiB));
  driver.fails["cuCtxDestroy_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(program.destroy(context) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.early() == 0);
  CHECK(program.charged() == kSlab);
}

TEST_CASE("a free of a block whose context has ended goes to the driver") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext gone = program.create();
  const CUdeviceptr address = program.take(1024);
  program.create();
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  CHECK(program.free(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.calls("cuMemFree_v2") == 1);
  CHECK(program.charged() == 0);
}

TEST_CASE("a reset and the last release end the pool, and the next life starts with its own") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB));
  program.retain();
  program.retain();
  program.take(1024);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 2 * kMiB);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  program.retain();
  program.take(1024);
  CHECK(program.charged() == 2 * kMiB);
  CHECK(program.reset() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  program.retain();
  CHECK(program.take(1024) != kUntouched);
}

TEST_CASE("a green context's blocks belong to its primary context and outlive the green one") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab), folder / "log");
  const CUcontext primary = program.retain();
  const CUdeviceptr before = program.take(1024);
  const CUgreenCtx green = program.create_green();
  program.enter_green(green);
  const CUdeviceptr address = program.take(1024);
  CHECK(address != kUntouched);
  CHECK(driver.asked().size() == 1);  // one pool
  CHECK(program.free(before) == CUDA_SUCCESS);
  FakeDriver::current = primary;
  CHECK(program.destroy_green(green) == CUDA_SUCCESS);
  CHECK(program.charged() == kSlab);
  CHECK(program.free(address) == CUDA_SUCCESS);
  for (const json &line : of_type(log_lines(folder / "log"), "alloc")) {
    CHECK(line.at("ctx") == 1);
  }
}

TEST_CASE("a primary context held only by green ones ends with the last of them, and so does its pool") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUgreenCtx first = program.create_green();
  const CUgreenCtx second = program.create_green();
  program.enter_green(first);
  CHECK(program.take(1024) != kUntouched);
  CHECK(program.destroy_green(first) == CUDA_SUCCESS);
  CHECK(program.charged() == kSlab);
  driver.fails["cuGreenCtxDestroy"] = CUDA_ERROR_INVALID_CONTEXT;
  CHECK(program.destroy_green(second) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.charged() == kSlab);
  driver.fails.clear();
  CHECK(program.destroy_green(second) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("if the driver does not say whether a primary context is alive, green ones count as references") {
  FakeDriver driver;
  driver::real.cuDevicePrimaryCtxGetState.set(nullptr);
  PooledProgram program(driver, limit_of(kSlab));
  program.retain();
  const CUgreenCtx green = program.create_green();
  program.take(1024);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == kSlab);
  driver.fails["cuGreenCtxDestroy"] = CUDA_ERROR_INVALID_CONTEXT;
  CHECK(program.destroy_green(green) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.charged() == kSlab);
  driver.fails.clear();
  CHECK(program.destroy_green(green) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("a current context that has ended is refused with the driver's own error") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext gone = program.create();
  REQUIRE(program.destroy(gone) == CUDA_SUCCESS);
  CHECK(program.take(1024) == kUntouched);
  CHECK(program.last == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.charged() == 0);
}
