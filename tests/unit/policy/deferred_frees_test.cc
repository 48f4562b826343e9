// When a block of mode async that the program has freed may go back to the driver.
#include "policy/deferred_frees.h"

#include <list>
#include <thread>

#include "catch.h"
#include "unit/policy/ward.h"

using namespace ration;
using namespace ration::test;
using policy::DeferredBlock;
using policy::DeferredFrees;

namespace {

struct Deferral : Ward {
  DeferredFrees frees{progress};
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
  Deferral ward;
  const policy::ContextRef other = ward.add_context(1);
  ward.driver.timeline.submit(ward.context->handle);
  ward.driver.timeline.submit(other->handle);
  ward.free_one(1000);
  CHECK(ward.frees.bytes() == 1000);
  CHECK(ward.collected() == 0);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collected() == 0);
  ward.driver.timeline.finish(other->handle);
  CHECK(ward.collected() == 1);
  CHECK(ward.frees.bytes() + ward.frees.blocks() + ward.frees.in_hands() == 0);
  CHECK(ward.frees.returned() == 1);
}

TEST_CASE("a block that is deferred behind a look is not clean with those before it") {
  Deferral ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  CHECK(ward.collected() == 0);
  const FakeTimeline::Point first = ward.driver.timeline.submitted();
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  ward.driver.timeline.finish(first);
  CHECK(ward.collected() == 1);
  CHECK(ward.frees.blocks() == 1);
}

TEST_CASE("looking never waits; waiting waits for the oldest alone, draining for all") {
  Deferral ward;
  for (int i = 0; i < 3; ++i) {
    ward.driver.timeline.submit(ward.context->handle);
    ward.free_one();
    CHECK(ward.collected() == 0);
  }
  CHECK(ward.driver.calls("cuEventSynchronize") == 0);
  std::list<DeferredBlock> clean;
  CHECK(ward.frees.wait(clean).waited);
  CHECK(clean.size() == 1);
  CHECK(ward.frees.in_hands() == 1);
  ward.return_all(clean);
  std::list<DeferredBlock> rest;
  CHECK(ward.frees.drain(rest).waited);
  CHECK(rest.size() == 2);
  CHECK(ward.return_all(rest) == 2);
  CHECK(ward.driver.calls("cuEventSynchronize") == 2);
}

TEST_CASE("draining waits for the device, too, where a context that was about to end lives on") {
  Deferral ward;
  const policy::ContextRef other = ward.add_context(1);
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  other->begin_end();
  const std::uint64_t before = ward.progress.now();
  std::jthread refuser([&] {
    while (ward.progress.now() < before + 3) std::this_thread::yield();  // two looks at least met it ending
    other->refuse_end();
  });
  std::list<DeferredBlock> clean;
  const DeferredFrees::Looked looked = ward.frees.drain(clean);
  CHECK(looked.waited);
  CHECK(clean.size() == 1);
  ward.return_all(clean);
}

TEST_CASE("an address is a dead block's from its free until the driver has it back, and no longer") {
  Deferral ward;
  CHECK_FALSE(ward.frees.covers(ward.next));
  const CUdeviceptr address = ward.free_one(1000);
  CHECK(ward.frees.covers(address));
  CHECK(ward.frees.covers(address + 999));
  CHECK_FALSE(ward.frees.covers(address + 1000));
  CHECK_FALSE(ward.frees.covers(address - 1));
  std::list<DeferredBlock> clean;
  ward.frees.collect(clean, true);
  REQUIRE(clean.size() == 1);
  CHECK(ward.frees.covers(address));
  ward.return_all(clean);
  CHECK_FALSE(ward.frees.covers(address));
}

TEST_CASE("clean blocks that cannot go back are looked at again") {
  Deferral ward;
  const CUdeviceptr address = ward.free_one(1000);
  std::list<DeferredBlock> clean;
  ward.frees.collect(clean, true);
  REQUIRE(clean.size() == 1);
  ward.frees.keep(clean);
  CHECK(ward.frees.in_hands() == 0);
  CHECK(ward.frees.returned() == 0);
  CHECK(ward.frees.covers(address));
  CHECK(ward.frees.bytes() == 1000);
  CHECK(ward.collected() == 1);
}

TEST_CASE("nothing becomes clean while a capture runs, and what was deferred stays") {
  Deferral ward;
  ward.free_one();
  ward.captures.begin_capture();
  ward.captures.finish_begin(nullptr, CUDA_SUCCESS, ward.context);
  std::list<DeferredBlock> clean;
  const DeferredFrees::Looked looked = ward.frees.wait(clean);
  CHECK(looked.capturing);
  CHECK_FALSE(looked.waited);
  CHECK(clean.empty());
  CHECK(ward.frees.blocks() == 1);
}

TEST_CASE("a driver that refuses an event cleans nothing, and its error is told") {
  Deferral ward;
  ward.free_one();
  ward.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_UNKNOWN;
  std::list<DeferredBlock> clean;
  CHECK(ward.frees.wait(clean).error == CUDA_ERROR_UNKNOWN);
  CHECK(ward.frees.drain(clean).error == CUDA_ERROR_UNKNOWN);
  CHECK(clean.empty());
  ward.driver.fails.clear();
  CHECK(ward.collected() == 1);
}

TEST_CASE("the host has no memory: a block is not deferred, or it stays deferred") {
  Deferral ward;
  allocations_left = 0;
  const bool added = ward.frees.add({0x300000000, 512, ward.context});
  allocations_left = -1;
  CHECK_FALSE(added);
  CHECK(ward.frees.blocks() + ward.frees.bytes() == 0);
  ward.free_one();
  for (int left = 0; left < 3; ++left) {
    std::list<DeferredBlock> clean;
    allocations_left = left;
    (void)ward.frees.collect(clean, true);
    allocations_left = -1;
    CHECK(clean.size() + ward.frees.blocks() >= 1);
    ward.frees.keep(clean);
    CHECK(ward.frees.blocks() == 1);
  }
  CHECK(ward.collected() == 1);
}

TEST_CASE("it is time to look when enough blocks or bytes are open") {
  Deferral ward;
  CHECK_FALSE(ward.frees.is_due(kMiB));
  ward.free_one(kMiB - 1);
  CHECK_FALSE(ward.frees.is_due(kMiB));
  ward.free_one(1);
  CHECK(ward.frees.is_due(kMiB));
  CHECK(ward.collected() == 2);
  for (int i = 0; i < 1023; ++i) {
    ward.free_one(1);
  }
  CHECK_FALSE(ward.frees.is_due(kMiB));
  ward.free_one(1);
  CHECK(ward.frees.is_due(kMiB));
}

TEST_CASE("a thread whose driver calls come back to it looks another time") {
  Deferral ward;
  ward.free_one();
  bool busy = false;
  ward.driver.after_record = [&] {
    std::list<DeferredBlock> clean;
    busy = ward.frees.collect(clean, true).busy;
  };
  CHECK(ward.collected() == 1);
  CHECK(busy);
}
