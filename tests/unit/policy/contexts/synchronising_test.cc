// Cleaning by synchronising: drivers without events of whole contexts, and the program's own synchronises.
#include "catch.h"
#include "unit/policy/pooled_program.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::FenceTracker;
using policy::Quarantine;

namespace {

// A slab of two blocks, both taken; the limit leaves no more.
struct Full {
  explicit Full(FakeDriver &fake) : driver(fake), program(fake, limit_of(kSlab)) {
    context = program.retain();
    first = program.take(kMiB);
    second = program.take(kMiB - 512);
    REQUIRE(second != kUntouched);
  }
  // What the first of them becomes when it is freed and taken again.
  CUdeviceptr take_again() { return program.take(kMiB); }
  bool waited() { return program.tally().devices[0].waits > 0; }

  FakeDriver &driver;
  PooledProgram program;
  CUcontext context;
  CUdeviceptr first, second;
};

}  // namespace

TEST_CASE("with a driver that lacks context events every context that can reach the device is synchronised") {
  QuarantineFixture fixture;
  fixture.contexts.note_peer(1, 0);
  fixture.add_context(2);
  driver::real.cuCtxRecordEvent.set(nullptr);
  const policy::ContextRef other = fixture.add_context(1);
  FakeDriver::current = fixture.context->handle;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.driver.timeline.submit(other->handle);
  fixture.free_one();
  CHECK(fixture.collect().blocks == 0);
  CHECK(fixture.driver.calls("cuCtxSynchronize") == 0);
  CHECK(fixture.wait().blocks == 1);
  CHECK(fixture.driver.calls("cuCtxSynchronize") == 2);
  CHECK_FALSE(fixture.driver.timeline.is_behind(fixture.driver.timeline.submitted()));
  CHECK(FakeDriver::current == fixture.context->handle);
}

TEST_CASE("a driver that exports context events without supporting them is asked once and then synchronised") {
  QuarantineFixture fixture;
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_NOT_SUPPORTED;
  for (int round = 0; round < 3; ++round) {
    fixture.driver.timeline.submit(fixture.context->handle);
    fixture.free_one();
    const Quarantine::Cleaned cleaned = fixture.wait();
    CHECK(cleaned.blocks == 1);
    CHECK(cleaned.error == CUDA_SUCCESS);
  }
  CHECK(fixture.driver.calls("cuCtxRecordEvent") == 1);
  CHECK(fixture.driver.calls("cuCtxSynchronize") == 3);
}

TEST_CASE("without events or synchronising nothing becomes clean") {
  QuarantineFixture fixture;
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_NOT_SUPPORTED;
  driver::real.cuCtxSynchronize.set(nullptr);
  fixture.free_one();
  CHECK(fixture.wait().error == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(fixture.retired() == 1);
}

TEST_CASE("a failed synchronise cleans nothing, and its error is returned") {
  QuarantineFixture fixture;
  driver::real.cuCtxRecordEvent.set(nullptr);
  fixture.free_one();
  fixture.driver.fails["cuCtxSynchronize"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(fixture.wait().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(fixture.retired() == 1);
  fixture.driver.fails = {{"cuCtxPushCurrent_v2", CUDA_ERROR_INVALID_CONTEXT}};
  FakeDriver::current = nullptr;
  CHECK(fixture.wait().error == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(fixture.retired() == 1);
}

TEST_CASE("what is freed while we synchronise is not cleaned by it") {
  QuarantineFixture fixture;
  driver::real.cuCtxRecordEvent.set(nullptr);
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.driver.during_synchronise = [&] {
    fixture.driver.during_synchronise = nullptr;
    fixture.driver.timeline.submit(fixture.context->handle);
    fixture.free_one();
    CHECK(fixture.collect().blocks == 0);  // sealed
  };
  CHECK(fixture.wait().blocks == 1);
  CHECK(fixture.collect().blocks == 0);
  CHECK(fixture.retired() == 1);
}

TEST_CASE("the program's own synchronise cleans what it freed before, without a wait of ours") {
  for (const bool events : {true, false}) {
    INFO(events);
    FakeDriver driver;
    if (!events) {
      driver::real.cuCtxRecordEvent.set(nullptr);
    }
    PooledProgram program(driver, limit_of(kSlab));
    const CUcontext context = program.create();
    driver.timeline.submit(context);
    program.free(program.take(1024));
    CHECK(program.synchronise() == CUDA_SUCCESS);
    driver.timeline.submit(context);  // too late to count
    CHECK(program.take(kWhole) != kUntouched);
    CHECK(program.tally().devices[0].waits == 0);
    CHECK(driver.calls("cuCtxSynchronize") == 1);
    CHECK(program.early() == 0);
  }
}

TEST_CASE("what the program frees while it synchronises is not cleaned by that") {
  for (const bool events : {true, false}) {
    INFO(events);
    FakeDriver driver;
    if (!events) {
      driver::real.cuCtxRecordEvent.set(nullptr);
    }
    Full full(driver);
    driver.during_synchronise = [&] {
      driver.during_synchronise = nullptr;
      driver.timeline.submit(full.context);  // too late for it
      full.program.free(full.first);
    };
    CHECK(full.program.synchronise() == CUDA_SUCCESS);
    CHECK(full.take_again() == full.first);
    CHECK(full.waited());
    CHECK(full.program.early() == 0);
  }
}

TEST_CASE("a synchronise of the program that fails cleans nothing") {
  FakeDriver driver;
  driver::real.cuCtxRecordEvent.set(nullptr);
  PooledProgram program(driver, limit_of(kSlab));
  driver.timeline.submit(program.create());
  program.free(program.take(1024));
  driver.fails["cuCtxSynchronize"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.synchronise() == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.take(kWhole) == kUntouched);
  CHECK(program.last == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.early() == 0);
}

TEST_CASE("a synchronise of the program cleans its own context and no other") {
  FakeDriver driver;
  driver::real.cuCtxRecordEvent.set(nullptr);
  PooledProgram program(driver, limit_of(kSlab));
  const CUcontext other = program.create();
  const CUcontext context = program.create();
  driver.timeline.submit(other);
  driver.timeline.submit(context);
  program.free(program.take(1024));
  CHECK(program.synchronise() == CUDA_SUCCESS);
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.tally().devices[0].waits > 0);
  CHECK(driver.calls("cuCtxSynchronize") == 2);  // the other one's by us
  CHECK(program.early() == 0);
}

TEST_CASE("a synchronise of a green context cleans nothing of its primary one") {
  FakeDriver driver;
  driver::real.cuCtxRecordEvent.set(nullptr);
  Full full(driver);
  const CUcontext green = full.program.enter_green(full.program.create_green());
  driver.timeline.submit(full.context);
  driver.timeline.submit(green);
  full.program.free(full.first);
  CHECK(full.program.synchronise() == CUDA_SUCCESS);
  CHECK(full.take_again() == full.first);
  CHECK(full.waited());
  CHECK(full.program.early() == 0);
}

TEST_CASE("a wait for a primary context covers the work of its green contexts") {
  FakeDriver driver;
  Full full(driver);
  const CUcontext green = full.program.enter_green(full.program.create_green());
  driver.timeline.submit(green);
  FakeDriver::current = full.context;
  full.program.free(full.first);
  CHECK(full.take_again() == full.first);
  CHECK(full.waited());
  CHECK(full.program.early() == 0);
}
