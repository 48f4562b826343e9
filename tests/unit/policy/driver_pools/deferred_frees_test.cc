// When a block of mode async that the program has freed may go back to the driver.
#include "policy/driver_pools/deferred_frees.h"

#include <thread>

#include "catch.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::DeferredBlock;
using policy::DeferredFrees;

namespace {

struct Deferral : QuarantineFixture {
  DeferredFrees frees{fences, policy::FenceTracker::kAllDevices};
  CUdeviceptr next = 0x200000000;

  CUdeviceptr free_one(std::uint64_t bytes = 512) {
    const CUdeviceptr address = next;
    next += kMiB;
    REQUIRE(frees.add({address, bytes, context}));
    return address;
  }
  std::size_t collected() { return return_all(collect()); }
  DeferredFrees::Cleaned collect() { return frees.collect(DeferredFrees::Sealing::always); }
  std::size_t return_all(const DeferredFrees::Cleaned &cleaned) {
    for (const std::unique_ptr<policy::Deferred> &item : cleaned.items) {
      const DeferredBlock &block = DeferredBlock::of(item);
      frees.finish_return(block, frees.begin_return(block), true);
    }
    return cleaned.items.size();
  }
};

}  // namespace

TEST_CASE("a deferred block is clean once every context got past its free") {
  Deferral fixture;
  const policy::ContextRef other = fixture.add_context(1);
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.driver.timeline.submit(other->handle);
  fixture.free_one(1000);
  CHECK(fixture.frees.bytes() == 1024);  // in whole granules
  CHECK(fixture.collected() == 0);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collected() == 0);
  fixture.driver.timeline.finish(other->handle);
  CHECK(fixture.collected() == 1);
  CHECK(fixture.frees.bytes() + fixture.frees.blocks() + fixture.frees.in_hands() == 0);
  CHECK(fixture.frees.reclaimed() == 1);
}

TEST_CASE("a block that is deferred after a collect is not clean with those before it") {
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

TEST_CASE("collecting never waits, waiting waits for the oldest epoch alone, draining for all") {
  Deferral fixture;
  for (int i = 0; i < 3; ++i) {
    fixture.driver.timeline.submit(fixture.context->handle);
    fixture.free_one();
    CHECK(fixture.collected() == 0);
  }
  CHECK(fixture.driver.calls("cuEventSynchronize") == 0);
  const DeferredFrees::Cleaned clean = fixture.frees.wait(fixture.frees.reclaimed());
  CHECK(clean.waited);
  CHECK(clean.items.size() == 1);
  CHECK(fixture.frees.in_hands() == 1);
  fixture.return_all(clean);
  const DeferredFrees::Cleaned rest = fixture.frees.drain();
  CHECK(rest.waited);
  CHECK(rest.items.size() == 2);
  CHECK(fixture.return_all(rest) == 2);
  CHECK(fixture.driver.calls("cuEventSynchronize") == 2);
}

TEST_CASE("a drain waits for the device if a context that was about to end survives") {
  Deferral fixture;
  const policy::ContextRef other = fixture.add_context(1);
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  other->begin_end();
  const std::uint64_t before = fixture.fences.now();
  std::jthread refuser([&] {
    while (fixture.fences.now() < before + 3) std::this_thread::yield();  // at least two seals met it ending
    other->refuse_end();
  });
  const DeferredFrees::Cleaned clean = fixture.frees.drain();
  CHECK(clean.waited);
  CHECK(clean.items.size() == 1);
  fixture.return_all(clean);
}

TEST_CASE("an address belongs to a freed block until the driver has the block back") {
  Deferral fixture;
  CHECK_FALSE(fixture.frees.covers(fixture.next));
  const CUdeviceptr address = fixture.free_one(1000);
  CHECK(fixture.frees.covers(address));
  CHECK(fixture.frees.covers(address + 999));
  CHECK_FALSE(fixture.frees.covers(address + 1000));
  CHECK_FALSE(fixture.frees.covers(address - 1));
  DeferredFrees::Cleaned clean = fixture.collect();
  REQUIRE(clean.items.size() == 1);
  CHECK(fixture.frees.covers(address));
  fixture.return_all(clean);
  CHECK_FALSE(fixture.frees.covers(address));
}

TEST_CASE("clean blocks that cannot go back are offered again") {
  Deferral fixture;
  const CUdeviceptr address = fixture.free_one(1000);
  DeferredFrees::Cleaned clean = fixture.collect();
  REQUIRE(clean.items.size() == 1);
  fixture.frees.keep(clean.items);
  CHECK(fixture.frees.in_hands() == 0);
  CHECK(fixture.frees.reclaimed() == 0);
  CHECK(fixture.frees.covers(address));
  CHECK(fixture.frees.bytes() == 1024);  // in whole granules
  CHECK(fixture.collected() == 1);
}

TEST_CASE("a retained block serves no request that is larger than itself, or that takes less of the pool") {
  Deferral fixture;
  const CUdeviceptr small = fixture.free_one(61);
  const CUdeviceptr medium = fixture.free_one(500);
  const CUdeviceptr large = fixture.free_one(1000);
  DeferredFrees::Cleaned clean = fixture.collect();
  REQUIRE(fixture.frees.retain(clean.items));
  CHECK(fixture.frees.retained_bytes() == 2048);
  CHECK(fixture.frees.take_retained(193) == medium);
  CHECK(fixture.frees.take_retained(62) == 0);
  CHECK(fixture.frees.take_retained(1001) == 0);
  CHECK(fixture.frees.take_retained(7) == small);
  CHECK(fixture.frees.take_retained(7) == 0);
  CHECK(fixture.frees.take_retained(513) == large);
  CHECK(fixture.frees.retained_bytes() == 0);
}

TEST_CASE("nothing becomes clean while a capture runs, and what was deferred stays") {
  Deferral fixture;
  fixture.free_one();
  fixture.captures.begin_capture();
  fixture.captures.finish_begin(nullptr, CUDA_SUCCESS, fixture.context);
  const DeferredFrees::Cleaned clean = fixture.frees.wait(fixture.frees.reclaimed());
  CHECK(clean.capturing);
  CHECK_FALSE(clean.waited);
  CHECK(clean.items.empty());
  CHECK(fixture.frees.blocks() == 1);
}

TEST_CASE("a driver that refuses an event cleans nothing, and its error is returned") {
  Deferral fixture;
  fixture.free_one();
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_UNKNOWN;
  const DeferredFrees::Cleaned waited = fixture.frees.wait(fixture.frees.reclaimed());
  const DeferredFrees::Cleaned drained = fixture.frees.drain();
  CHECK(waited.error == CUDA_ERROR_UNKNOWN);
  CHECK(drained.error == CUDA_ERROR_UNKNOWN);
  CHECK(waited.items.empty());
  CHECK(drained.items.empty());
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
    allocations_left = left;
    DeferredFrees::Cleaned clean = fixture.collect();
    allocations_left = -1;
    CHECK(clean.items.size() + fixture.frees.blocks() >= 1);
    fixture.frees.keep(clean.items);
    CHECK(fixture.frees.blocks() == 1);
  }
  CHECK(fixture.collected() == 1);
}

TEST_CASE("it is worth collecting when enough blocks or bytes are open") {
  Deferral fixture;
  CHECK_FALSE(fixture.frees.is_worth_collecting(kMiB));
  fixture.free_one(kMiB - 1024);
  CHECK_FALSE(fixture.frees.is_worth_collecting(kMiB));
  fixture.free_one(513);
  CHECK(fixture.frees.is_worth_collecting(kMiB));
  CHECK(fixture.collected() == 2);
  for (int i = 0; i < 1023; ++i) {
    fixture.free_one(1);
  }
  CHECK_FALSE(fixture.frees.is_worth_collecting(kMiB));
  fixture.free_one(1);
  CHECK(fixture.frees.is_worth_collecting(kMiB));
}

TEST_CASE("a collect inside the driver call of another one, and a drain, do not wait for it") {
  Deferral fixture;
  fixture.free_one();
  std::size_t inside = 0;
  fixture.driver.after_record = [&] {
    fixture.driver.after_record = nullptr;
    inside = fixture.collected() + fixture.return_all(fixture.frees.drain());
  };
  CHECK(fixture.collected() == 1);
  CHECK(inside == 0);
}
