// What a hook of work looks at before the driver's call: frees without a fence, and memory of another device's.
#include "catch.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

bool is_open(PooledProgram &program) {
  return program.parts.context_pools.find(FakeDriver::current) != nullptr;
}

}  // namespace

TEST_CASE("a free is noted for later work until it has a fence") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(16 * kMiB));
  program.create();
  policy::DeviceReach &reach = program.parts.device_reach;
  const CUdeviceptr block = program.take(4096);
  REQUIRE(program.free(program.take(4096)) == CUDA_SUCCESS);  // the first is due at once
  reach.seal_frees();
  CHECK_FALSE(reach.may_have_unsealed_frees());
  SECTION("on the slow path") {
    program.parts.context_pools.close_all(0);
  }
  SECTION("on the fast path") {
    REQUIRE(is_open(program));
  }
  REQUIRE(program.free(block) == CUDA_SUCCESS);
  CHECK(reach.may_have_unsealed_frees());
  reach.seal_frees();
  CHECK_FALSE(reach.may_have_unsealed_frees());
}

TEST_CASE("a free that cannot have a fence yet stays noted") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(16 * kMiB));
  program.create();
  policy::DeviceReach &reach = program.parts.device_reach;
  const CUdeviceptr block = program.take(4096);
  SECTION("during a capture") {
    const auto stream = reinterpret_cast<CUstream>(std::uintptr_t{0x40});
    REQUIRE(program.begin_capture(stream) == CUDA_SUCCESS);
    REQUIRE(program.free(block) == CUDA_SUCCESS);
    reach.seal_frees();
    CHECK(reach.may_have_unsealed_frees());
    REQUIRE(program.end_capture(stream) == CUDA_SUCCESS);
    reach.seal_frees();
    CHECK_FALSE(reach.may_have_unsealed_frees());
  }
  SECTION("after so many that had one of their own") {
    bool noted = false;
    for (int i = 0; i < 1000 && !noted; ++i) {
      REQUIRE(program.free(program.take(4096)) == CUDA_SUCCESS);
      reach.seal_frees();
      noted = reach.may_have_unsealed_frees();
    }
    CHECK(noted);
    REQUIRE(program.synchronise() == CUDA_SUCCESS);
    REQUIRE(program.free(program.take(4096)) == CUDA_SUCCESS);
    reach.seal_frees();
    CHECK_FALSE(reach.may_have_unsealed_frees());
  }
}

TEST_CASE("work on memory of its own device leaves no trace, on another's it does") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(16 * kMiB));
  const CUcontext first = program.create(0);
  const CUdeviceptr here = program.take(4096);
  program.create(1);
  const CUdeviceptr there = program.take(4096);
  FakeDriver::current = first;
  policy::DeviceReach &reach = program.parts.device_reach;
  using Work = policy::DeviceReach::Work;
  CHECK(reach.is_needed());
  CHECK_FALSE(reach.used_abroad(Work{.addresses = {here, here}}).any());
  CHECK_FALSE(reach.used_abroad(Work{.addresses = {0x1234, 0}}).any());
  CHECK_FALSE(reach.used_abroad({}).any());
  CHECK(reach.used_abroad(Work{.addresses = {here, there}}).any());
  CHECK(reach.used_abroad(Work{.addresses = {there, 0}}).any());
  CHECK(reach.used_abroad(Work{.anywhere = true}).any());
}
