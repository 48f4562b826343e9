// Contexts begin and end, and their blocks end with them.
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a destroyed context ends its own blocks and no others") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(100'000), folder / "log");
  const CUcontext kept = program.create();
  program.take(1024);
  const CUcontext gone = program.create();
  for (int i = 0; i < 100; ++i) {  // more than a batch
    program.take(512);
  }
  CHECK(program.destroy(gone) == CUDA_SUCCESS);
  CHECK(program.charged() == 1024);
  FakeDriver::current = kept;
  CHECK(program.take(98'976) != kUntouched);
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
  const CUdeviceptr address = program.take(1024);
  driver.fails["cuCtxDestroy_v2"] = CUDA_ERROR_INVALID_VALUE;
  CHECK(program.destroy(context) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 1024);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(program.tally().failed_frees == 0);
}

TEST_CASE("a context that Ration never saw is left to the driver") {
  FakeDriver driver;
  Program program;
  CHECK(program.destroy(reinterpret_cast<CUcontext>(0x77)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.detach(reinterpret_cast<CUcontext>(0x77)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.release() == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.reset() == CUDA_SUCCESS);
}

TEST_CASE("a context is noted when it is first seen current, on its own device") {
  FakeDriver driver;
  Program program(limit_of(10240));
  CUcontext context = nullptr;
  REQUIRE(driver.create(&context, 1) == CUDA_SUCCESS);  // past Ration
  program.take(7168);
  CHECK(program.charged(1) == 7168);
  CHECK(program.charged(0) == 0);
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
}

TEST_CASE("only the last release of a primary context ends its blocks") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.retain();
  program.retain();
  const CUdeviceptr address = program.take(6144);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 6144);
  CHECK(program.free(address) == CUDA_SUCCESS);
  program.take(5120);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("if the driver does not say whether a primary context is alive, the program's own count decides") {
  FakeDriver driver;
  driver::real.cuDevicePrimaryCtxGetState.set(nullptr);
  Program program(limit_of(10240));
  program.retain();
  program.retain();
  program.take(6144);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 6144);
  driver.fails["cuDevicePrimaryCtxRelease_v2"] = CUDA_ERROR_UNKNOWN;
  CHECK(program.release() == CUDA_ERROR_UNKNOWN);
  CHECK(program.charged() == 6144);
  driver.fails.clear();
  program.retain();
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 6144);
  CHECK(program.release() == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a reset ends every block of the primary context, and the next life starts with none") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.retain(1);
  program.take(10240);
  CHECK(program.reset(1) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
  program.retain(1);
  CHECK(program.take(10240) != kUntouched);
  CHECK(program.release(1) == CUDA_SUCCESS);
  CHECK(program.charged(1) == 0);
}

TEST_CASE("a created context with the handle of a former primary one is not mistaken for it") {
  FakeDriver driver;
  Program program(limit_of(10240));
  const CUcontext primary = program.retain();
  REQUIRE(program.release() == CUDA_SUCCESS);
  const CUcontext created = program.create();
  REQUIRE(created == primary);
  const CUdeviceptr address = program.take(6144);
  CHECK(program.reset() == CUDA_SUCCESS);
  CHECK(driver.is_live(address));
  CHECK(program.charged() == 6144);
}

TEST_CASE("the last detach destroys a context, and each attach counts") {
  FakeDriver driver;
  Program program(limit_of(10240));
  const CUcontext context = program.create();
  program.parts.context_life.attached(context);
  program.take(6144);
  const auto not_last = [] { return CUDA_SUCCESS; };
  CHECK(program.parts.context_life.detach("cuCtxDetach", context, not_last) == CUDA_SUCCESS);
  CHECK(program.charged() == 6144);
  CHECK(program.detach(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a detach that the driver refuses does not count") {
  FakeDriver driver;
  Program program(limit_of(10240));
  const CUcontext context = program.create();
  program.parts.context_life.attached(context);
  program.take(6144);
  const auto refused = [] { return CUDA_ERROR_INVALID_VALUE; };
  const auto not_last = [] { return CUDA_SUCCESS; };
  CHECK(program.parts.context_life.detach("cuCtxDetach", context, refused) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.parts.context_life.detach("cuCtxDetach", context, not_last) == CUDA_SUCCESS);
  CHECK(program.parts.context_life.detach("cuCtxDetach", context, refused) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 6144);
  CHECK(program.detach(context) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("a context's own memory is charged on request, and released with it") {
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
