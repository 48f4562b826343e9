// The short way of a hit: when it is there, what it keeps, and what becomes of that.
#include "catch.h"
#include "policy/quarantine.h"
#include "unit/policy/ward.h"

using namespace ration;
using namespace ration::test;
using policy::HitLane;
using policy::Quarantine;

namespace {

// The pool of one context with a lane, in a ward's quarantine.
struct Lane {
  explicit Lane(Ward &in, std::uint64_t at = 0x900000000)
      : ward(in),
        context(in.add_context()),
        pool(std::make_unique<policy::ContextPool>(*context, policy::HitLanes::Claim(in.lanes, context->handle, 0))),
        lane(pool->claim.lane()) {
    REQUIRE(lane != nullptr);
    REQUIRE(pool->blocks.add_slab({at, 16 * kMiB, 2}) == pool::AddSlabOutcome::kAdded);
    open();
  }
  void open() {
    ward.lanes.note_use();
    lane->open(*pool, context->handle, [] { return true; });
  }
  std::uint64_t take(std::uint64_t bytes = 512) {
    std::uint64_t address = 0;
    return lane->allocate(context->handle, bytes, ward.journal, address) ? address : 0;
  }
  HitLane::Freed free(std::uint64_t address) {
    int device = -1;
    return lane->free(context->handle, address, ward.journal, UINT64_MAX, device);
  }
  // Frees until one is due, which is looked after as Pools does it; how many that took.
  int frees_until_due(std::uint64_t bytes = 512) {
    for (int frees = 1; frees <= 10'000; ++frees) {
      const HitLane::Freed freed = free(take(bytes));
      REQUIRE(freed != HitLane::Freed::no);
      if (freed == HitLane::Freed::due && ward.quarantine.take_in()) {
        return frees;
      }
    }
    return 0;
  }

  Ward &ward;
  policy::ContextRef context;
  std::unique_ptr<policy::ContextPool> pool;
  HitLane *lane;
};

}  // namespace

TEST_CASE("a lane serves the handle that it is open for, until it is closed") {
  Ward ward;
  Lane way(ward);
  const CUcontext handle = way.context->handle;
  CHECK(ward.lanes.find(handle) == way.lane);
  const std::uint64_t block = way.take();
  CHECK(block != 0);
  CHECK(way.pool->blocks.find(block));
  std::uint64_t none = 0;
  CHECK_FALSE(way.lane->allocate(ward.context->handle, 512, ward.journal, none));
  way.lane->close();
  CHECK(ward.lanes.find(handle) == nullptr);
  CHECK(way.take() == 0);
  CHECK(way.free(block) == HitLane::Freed::no);
  way.lane->open(*way.pool, handle, [] { return false; });
  CHECK(way.take() == 0);
  way.open();
  CHECK(way.free(block) == HitLane::Freed::due);  // the quarantine has not said yet when
  CHECK(way.pool->blocks.statistics().retired_blocks == 1);
  CHECK(ward.journal.tally().devices[0].allocs == 1);
  CHECK(ward.journal.tally().devices[0].frees == 1);
  CHECK(ward.journal.tally().devices[0].live_bytes == 0);
}

TEST_CASE("a block that is too large to be freed untold is not the lane's to free") {
  Ward ward;
  Lane way(ward);
  const std::uint64_t block = way.take(4096);
  int device = -1;
  CHECK(way.lane->free(way.context->handle, block, ward.journal, 4095, device) == HitLane::Freed::no);
  CHECK(way.pool->blocks.find(block));
  CHECK(ward.journal.tally().devices[0].frees == 0);
  CHECK(ward.quarantine.blocks() == 0);
  CHECK(way.lane->free(way.context->handle, block, ward.journal, 4096, device) != HitLane::Freed::no);
  CHECK(ward.quarantine.blocks() == 1);
}

TEST_CASE("a lane whose pool has gone turns away who comes late, also when another pool has it") {
  Ward ward;
  std::optional<Lane> gone(std::in_place, ward);
  const CUcontext handle = gone->context->handle;
  HitLane *lane = gone->lane;
  REQUIRE(gone->free(gone->take()) != HitLane::Freed::no);
  gone.reset();
  std::uint64_t none = 0;
  int device = 0;
  CHECK_FALSE(lane->allocate(handle, 512, ward.journal, none));
  CHECK(lane->free(handle, 0x900000200, ward.journal, UINT64_MAX, device) == HitLane::Freed::no);
  CHECK(ward.quarantine.blocks() == 0);
  policy::ContextPool next(*ward.context, policy::HitLanes::Claim(ward.lanes, handle, 0));
  REQUIRE(next.claim.lane() == lane);
  CHECK(ward.quarantine.blocks() == 0);
  REQUIRE(next.blocks.add_slab({0x900000000, kMiB, 3}) == pool::AddSlabOutcome::kAdded);
  lane->open(next, ward.context->handle, [] { return true; });
  CHECK_FALSE(lane->allocate(handle, 512, ward.journal, none));
  CHECK(lane->allocate(ward.context->handle, 512, ward.journal, none));
  CHECK(lane->free(handle, none, ward.journal, UINT64_MAX, device) == HitLane::Freed::no);
}

TEST_CASE("a handle has four lanes at most, and who gets none does without") {
  Ward ward;
  const CUcontext handle = ward.context->handle;
  std::vector<policy::HitLanes::Claim> claims;
  for (int i = 0; i < 4; ++i) {
    claims.emplace_back(ward.lanes, handle, 0);
    CHECK(claims.back().lane() != nullptr);
  }
  CHECK(policy::HitLanes::Claim(ward.lanes, handle, 0).lane() == nullptr);
  claims.pop_back();
  CHECK(policy::HitLanes::Claim(ward.lanes, handle, 0).lane() != nullptr);
}

TEST_CASE("what does not start a live block of its pool, or has no room there, is not the lane's business") {
  Ward ward;
  Lane way(ward);
  const std::uint64_t block = way.take(1024);
  CHECK(way.free(0) == HitLane::Freed::no);
  CHECK(way.free(block + 512) == HitLane::Freed::no);
  CHECK(way.free(ward.take()) == HitLane::Freed::no);
  CHECK(way.free(block) != HitLane::Freed::no);
  CHECK(way.free(block) == HitLane::Freed::no);
  CHECK(way.take(17 * kMiB) == 0);
  CHECK(ward.journal.tally().devices[0].allocs == 1);
  CHECK(ward.journal.tally().devices[0].frees == 1);
}

TEST_CASE("what is freed on the short way counts as quarantined at once") {
  Ward ward;
  Lane way(ward);
  CHECK(way.frees_until_due() == 1024);
  way.free(way.take(1024));
  ward.free_one();
  CHECK(ward.quarantine.blocks() == 1026);
  way.free(way.take());
  CHECK(ward.quarantine.bytes() == 1024 * 512 + 1024 + 512 + 512);
  way.free(way.take());
  CHECK(ward.quarantine.retired() == 1028);
  way.free(way.take());
  CHECK(ward.collect().blocks == 1029);
  CHECK(ward.retired() == 0);
  CHECK(way.pool->blocks.statistics().retired_blocks == 0);
}

TEST_CASE("on the short way too a seal is due after 1,024 frees or an eighth of the bytes") {
  Ward ward;
  Lane way(ward);
  CHECK(way.frees_until_due() == 1024);
  ward.collect();
  CHECK(way.frees_until_due() == 1024);
  ward.collect();
  CHECK(way.frees_until_due(kMiB) == Ward::kBytes / kMiB / 8);
  ward.collect();
  ward.quarantine.set_sizes(Ward::kBytes, 4 * kMiB);
  ward.free_one();
  CHECK(way.frees_until_due() == 1023);
}

TEST_CASE("on the short way too epochs grow where the program had to wait, and a seal that failed is put off") {
  Ward ward;
  Lane way(ward);
  for (const int frees : {1024, 2048, 4096}) {
    CHECK(way.frees_until_due() == frees);
    ward.driver.timeline.submit(ward.context->handle);
    CHECK(ward.quarantine.wait().waited);
  }
  ward.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(way.frees_until_due() == 4096);
  CHECK(ward.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(way.frees_until_due() == 1024);
}

TEST_CASE("a seal speaks for what was freed on the short way before it, and for nothing after") {
  Ward ward;
  Lane way(ward);
  ward.driver.timeline.submit(way.context->handle);
  way.free(way.take());
  CHECK(ward.collect().blocks == 0);
  CHECK(ward.driver.calls("cuCtxRecordEvent") == 2);
  ward.driver.timeline.submit(way.context->handle);
  way.free(way.take());
  ward.driver.timeline.finish(way.context->handle);
  ward.driver.timeline.submit(way.context->handle);
  CHECK(ward.quarantine.collect(Quarantine::Sealing::worthwhile).blocks == 1);
  CHECK(ward.quarantine.blocks() == 1);
  CHECK(way.pool->blocks.statistics().retired_blocks == 1);
}

TEST_CASE("a pool that goes takes along what its lane keeps, and what others keep stays") {
  Ward ward;
  Lane way(ward);
  Lane other(ward, 0xa00000000);
  for (const bool taken_in : {true, false}) {
    for (Lane *each : {&way, &other}) {
      each->free(each->take());
    }
    if (taken_in) {
      ward.quarantine.take_in();
    }
  }
  way.lane->close();
  ward.quarantine.forget(*way.pool);
  CHECK(way.pool->blocks.statistics().retired_blocks == 0);
  CHECK(ward.quarantine.blocks() == 2);
  CHECK(ward.collect().blocks == 2);
}

TEST_CASE("a lane that is full, because the host has no memory to take its blocks in, keeps all of them") {
  Ward ward;
  Lane way(ward);
  REQUIRE(way.pool->blocks.reserve(2 * HitLane::kMostFreed));
  std::uint64_t block = 0;
  allocations_left = 0;
  for (int frees = 0; frees < static_cast<int>(HitLane::kMostFreed); ++frees) {
    block = way.take();
    if (way.free(block) == HitLane::Freed::due) {
      ward.quarantine.take_in();
    }
  }
  block = way.take();
  const HitLane::Freed freed = way.free(block);
  std::uint64_t bytes = 0;
  Quarantine::Ticket ticket;
  bool due = false;
  const Quarantine::Retired retired = ward.quarantine.retire(*way.pool, block, bytes, ticket, due);
  allocations_left = -1;
  CHECK(freed == HitLane::Freed::no);
  CHECK(retired == Quarantine::Retired::no_host_memory);
  CHECK(way.pool->blocks.find(block));
  CHECK(ward.quarantine.blocks() == HitLane::kMostFreed);
  CHECK(ward.collect().blocks == HitLane::kMostFreed);
}

TEST_CASE("no free of a pool that shares a block is a hit, its allocations are") {
  Ward ward;
  Lane way(ward);
  const std::uint64_t address = way.take();
  way.pool->shared.fetch_add(1);
  CHECK(way.free(address) == HitLane::Freed::no);
  CHECK(way.take() != 0);
  way.pool->shared.fetch_sub(1);
  CHECK(way.free(address) != HitLane::Freed::no);
}
