// What a Stitcher gives back to the device.
#include <optional>
#include <vector>

#include "catch.h"
#include "pool/stitch/stitcher.h"
#include "pool_checks/checked_device.h"

using namespace ration::pool;
using namespace ration::pool::stitch;

namespace {

constexpr std::uint64_t kPage = CheckedDevice::kPage;
constexpr std::uint64_t kPages = 16;

struct Fixture {
  void open(std::uint64_t each) {
    REQUIRE(stitcher.open(device.layout()));
    for (std::uint64_t pages = 0; pages < kPages; pages += each) {
      const std::optional<std::uint64_t> handle = device.create(each * kPage);
      REQUIRE(handle);
      REQUIRE(stitcher.add(*handle, each * kPage));
    }
    Plan plan;
    REQUIRE(stitcher.plan_home(plan));
    CHECK_FALSE(carry_out(0, plan));
  }
  std::optional<Block> carry_out(std::uint64_t bytes, Plan &plan) {
    plan.execute(device);
    const std::optional<Block> block = stitcher.finish(bytes, plan);
    CHECK(device.wrong() == "");
    CHECK(pool.check_invariants() == "");
    CHECK(stitcher.check_invariants() == "");
    return block;
  }
  Block stitched(std::uint64_t bytes) {
    Plan plan;
    REQUIRE(stitcher.plan(bytes, plan));
    const std::optional<Block> block = carry_out(bytes, plan);
    REQUIRE(block);
    device.take(*block);
    return *block;
  }
  Block placed(std::uint64_t bytes) {
    const AllocateOutcome outcome = pool.allocate(bytes);
    REQUIRE(outcome);
    device.take(outcome.block);
    return outcome.block;
  }
  std::uint64_t release(std::uint64_t bytes) {
    Plan plan;
    const std::uint64_t released = stitcher.plan_release(bytes, plan);
    carry_out(0, plan);
    return released;
  }
  void become_random() {
    for (std::uint64_t i = 0; i < 20; ++i) (void)stitcher.takes(kPage + i * 4096);
    REQUIRE(stitcher.counts().scarce);
  }

  CheckedDevice device{kPages};
  Pool pool;
  Stitcher stitcher{pool};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "of a pool that holds nothing, all memory is released") {
  open(4);
  CHECK(release(UINT64_MAX) == kPages * kPage);
  CHECK(device.free_pages() == kPages);
  CHECK(stitcher.counts().granules == 0);
  CHECK(release(UINT64_MAX) == 0);
}

TEST_CASE_METHOD(Fixture, "no more granules are released than hold the bytes that are asked for") {
  open(1);
  CHECK(release(3 * kPage + 1) == 4 * kPage);
  CHECK(device.free_pages() == 4);
  CHECK(pool.statistics().free_bytes + stitcher.counts().stock_bytes == 12 * kPage);
}

TEST_CASE_METHOD(Fixture, "a granule with a block in it is kept, and so is what a live view is made of") {
  open(2);
  placed(512);
  const Block view = stitched(6 * kPage);
  CHECK(release(UINT64_MAX) == (kPages - 8) * kPage);
  CHECK(device.free_pages() == kPages - 8);
  device.leave(view.address);
  REQUIRE(stitcher.end(view.address, View::State::live));
  CHECK(release(UINT64_MAX) == 6 * kPage);
  CHECK(stitcher.counts().granule_bytes == 2 * kPage);
}

TEST_CASE_METHOD(Fixture, "a view is gone with the granules that it mapped") {
  open(1);
  const Block kept = placed(512);
  become_random();
  const Block view = stitched(5 * kPage / 2);
  device.leave(kept.address);
  REQUIRE(pool.free(kept.address));
  device.leave(view.address);
  REQUIRE(stitcher.end(view.address, View::State::live));
  CHECK(stitcher.counts().views == 1);
  CHECK(release(UINT64_MAX) == kPages * kPage);
  CHECK(stitcher.counts().views == 0);
}

TEST_CASE_METHOD(Fixture, "what was released can be added again") {
  open(4);
  const Block kept = placed(512);
  CHECK(release(UINT64_MAX) == 12 * kPage);
  const std::optional<std::uint64_t> handle = device.create(12 * kPage);
  REQUIRE(handle);
  REQUIRE(stitcher.add(*handle, 12 * kPage));
  Plan plan;
  REQUIRE(stitcher.plan_home(plan));
  carry_out(0, plan);
  CHECK(pool.statistics().free_bytes == 16 * kPage - kept.bytes);
  placed(12 * kPage);
}

TEST_CASE_METHOD(Fixture, "where the driver refuses to take a mapping away, its granule is kept") {
  open(4);
  device.refuse(1);
  Plan plan;
  CHECK(stitcher.plan_release(UINT64_MAX, plan) == kPages * kPage);
  carry_out(0, plan);
  CHECK(device.free_pages() == 4);
  CHECK(stitcher.counts().granule_bytes == 12 * kPage);
  CHECK(release(UINT64_MAX) == 12 * kPage);
}
