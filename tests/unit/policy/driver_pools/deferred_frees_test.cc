// When a block of mode async that the program has freed may go back to the driver.
#include "policy/driver_pools/deferred_frees.h"

#include <list>
#include <thread>

#include "catch.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::DeferredBlock;
using policy::DeferredFrees;

namespace {

struct Deferral : QuarantineFixture {
  DeferredFrees frees{fences};
  CUdeviceptr next = 0x200000000;

  CUdeviceptr free_one(std::uint64_t bytes = 512) {
    const CUdeviceptr address = next;
    next += kMiB;
    REQUIRE(frees.add({address, bytes, context}));
    return address;
  }
  std::size_t collected() {
    std::list<DeferredBlock> clean;
    frees.collect(clean, true);
    return return_all(clean);
  }
  std::size_t return_all(std::list<DeferredBlock> &clean) {
    for (const DeferredBlock &block : clean) {
      frees.given_back(block);
      frees.out_of_hands();
    }
    return clean.size();
  }
};

}  // namespace

TEST_CASE("a deferred block is clean once every context got past its free") {
  Deferral fixture;
  const policy::ContextRef other = fixture.add_context(1);
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.driver.timeline.submit(other->handle);
  fixture.free_one(1000);
  CHECK(fixture.frees.bytes() == 1000);
  CHECK(fixture.collected() == 0);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collected() == 0);
  fixture.driver.timeline.finish(other->handle);
  CHECK(fixture.collected() == 1);
  CHECK(fixture.frees.bytes() + fixture.frees.blocks() + fixture.frees.in_hands() == 0);
  CHECK(fixture.frees.returned() == 1);
}

TEST_CASE("a block that is deferred behind a look is not clean with those before it") {
  Deferral fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  CHECK(fixture.collected() == 0);
  const FakeTimeline::Point first = fixture.driver.timeline.submitted();
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.driver.timeline.finish(first);
  CHECK(fixture.collected() == 1);
  CHECK(fixture.frees.blocks() == 1);
}

TEST_CASE("looking never waits; waiting waits for the oldest alone, draining for all") {
  Deferral fixture;
  for (int i = 0; i < 3; ++i) {
    fixture.driver.timeline.submit(fixture.context->handle);
    fixture.free_one();
    CHECK(fixture.collected() == 0);
  }
  CHECK(fixture.driver.calls("cuEventSynchronize") == 0);
  std::list<DeferredBlock> clean;
  CHECK(fixture.frees.wait(clean).waited);
  CHECK(clean.size() == 1);
  CHECK(fixture.frees.in_hands() == 1);
  fixture.return_all(clean);
  std::list<DeferredBlock> rest;
  CHECK(fixture.frees.drain(rest).waited);
  CHECK(rest.size() == 2);
  CHECK(fixture.return_all(rest) == 2);
  CHECK(fixture.driver.calls("cuEventSynchronize") == 2);
}

TEST_CASE("draining waits for the device, too, where a context that was about to end lives on") {
  Deferral fixture;
  const policy::ContextRef other = fixture.add_context(1);
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  other->begin_end();
  const std::uint64_t before = fixture.fences.now();
  std::jthread refuser([&] {
    while (fixture.fences.now() < before + 3) std::this_thread::yield();  // two looks at least met it ending
    other->refuse_end();
  });
  std::list<DeferredBlock> clean;
  const DeferredFrees::Looked looked = fixture.frees.drain(clean);
  CHECK(looked.waited);
  CHECK(clean.size() == 1);
  fixture.return_all(clean);
}

TEST_CASE("an address is a dead block's from its free until the driver has it back, and no longer") {
  Deferral fixture;
  CHECK_FALSE(fixture.frees.covers(fixture.next));
  const CUdeviceptr address = fixture.free_one(1000);
  CHECK(fixture.frees.covers(address));
  CHECK(fixture.frees.covers(address + 999));
  CHECK_FALSE(fixture.frees.covers(address + 1000));
  CHECK_FALSE(fixture.frees.covers(address - 1));
  std::list<DeferredBlock> clean;
  fixture.frees.collect(clean, true);
  REQUIRE(clean.size() == 1);
  CHECK(fixture.frees.covers(address));
  fixture.return_all(clean);
  CHECK_FALSE(fixture.frees.covers(address));
}

TEST_CASE("clean blocks that cannot go back are looked at again") {
  Deferral fixture;
  const CUdeviceptr address = fixture.free_one(1000);
  std::list<DeferredBlock> clean;
  fixture.frees.collect(clean, true);
  REQUIRE(clean.size() == 1);
  fixture.frees.keep(clean);
  CHECK(fixture.frees.in_hands() == 0);
  CHECK(fixture.frees.returned() == 0);
  CHECK(fixture.frees.covers(address));
  CHECK(fixture.frees.bytes() == 1000);
  CHECK(fixture.collected() == 1);
}

TEST_CASE("nothing becomes clean while a capture runs, and what was deferred stays") {
  Deferral fixture;
  fixture.free_one();
  fixture.captures.begin_capture();
  fixture.captures.finish_begin(nullptr, CUDA_SUCCESS, fixture.context);
  std::list<DeferredBlock> clean;
  const DeferredFrees::Looked looked = fixture.frees.wait(clean);
  CHECK(looked.capturing);
  CHECK_FALSE(looked.waited);
  CHECK(clean.empty());
  CHECK(fixture.frees.blocks() == 1);
}

TEST_CASE("a driver that refuses an event cleans nothing, and its error is told") {
  Deferral fixture;
  fixture.free_one();
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_UNKNOWN;
  std::list<DeferredBlock> clean;
  CHECK(fixture.frees.wait(clean).error == CUDA_ERROR_UNKNOWN);
  CHECK(fixture.frees.drain(clean).error == CUDA_ERROR_UNKNOWN);
  CHECK(clean.empty());
  fixture.driver.fails.clear();
  CHECK(fixture.collected() == 1);
}

TEST_CASE("the host has no memory: a block is not deferred, or it stays deferred") {
  Deferral fixture;
  allocations_left = 0;
  const bool added = fixture.frees.add({0x300000000, 512, fixture.context});
  allocations_left = -1;
  CHECK_FALSE(added);
  CHECK(fixture.frees.blocks() + fixture.frees.bytes() == 0);
  fixture.free_one();
  for (int left = 0; left < 3; ++left) {
    std::list<DeferredBlock> clean;
    allocations_left = left;
    (void)fixture.frees.collect(clean, true);
    allocations_left = -1;
    CHECK(clean.size() + fixture.frees.blocks() >= 1);
    fixture.frees.keep(clean);
    CHECK(fixture.frees.blocks() == 1);
  }
  CHECK(fixture.collected() == 1);
}

TEST_CASE("it is time to look when enough blocks or bytes are open") {
  Deferral fixture;
  CHECK_FALSE(fixture.frees.is_due(kMiB));
  fixture.free_one(kMiB - 1);
  CHECK_FALSE(fixture.frees.is_due(kMiB));
  fixture.free_one(1);
  CHECK(fixture.frees.is_due(kMiB));
  CHECK(fixture.collected() == 2);
  for (int i = 0; i < 1023; ++i) {
    fixture.free_one(1);
  }
  CHECK_FALSE(fixture.frees.is_due(kMiB));
  fixture.free_one(1);
  CHECK(fixture.frees.is_due(kMiB));
}

TEST_CASE("a thread whose driver calls come back to it looks another time") {
  Deferral fixture;
  fixture.free_one();
  bool busy = false;
  fixture.driver.after_record = [&] {
    std::list<DeferredBlock> clean;
    busy = fixture.frees.collect(clean, true).busy;
  };
  CHECK(fixture.collected() == 1);
  CHECK(busy);
}
