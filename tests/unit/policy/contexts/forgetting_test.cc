// A pool whose context has ended: its blocks in quarantine delay no others.
#include "catch.h"
#include "policy/block_pool/quarantine.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::Quarantine;

namespace {

// The pool of a second context, in the same quarantine.
struct EndingPool {
  explicit EndingPool(QuarantineFixture &in) : fixture(in), context(in.add_context()), pool(*context) {
    REQUIRE(pool.blocks.add_slab({0x900000000, kMiB, 2}) == pool::AddSlabOutcome::kAdded);
  }
  pool::Address take() {
    pool::NoUpstream none;
    return pool.blocks.allocate(512, none).block.address;
  }
  Quarantine::Retired free(pool::Address address) {
    Quarantine::PendingRecord pending;
    std::uint64_t bytes = 0;
    bool due = false;
    return fixture.quarantine.retire(pool, address, bytes, pending, due);
  }

  QuarantineFixture &fixture;
  policy::ContextRef context;
  policy::ContextPool pool;
};

}  // namespace

TEST_CASE("a pool that ends takes its blocks out of quarantine, open or sealed, and no others") {
  QuarantineFixture fixture;
  EndingPool ending(fixture);
  fixture.driver.timeline.submit(fixture.context->handle);
  for (const bool seal : {true, false}) {
    fixture.free_one();
    REQUIRE(ending.free(ending.take()) == Quarantine::Retired::retired);
    if (seal) {
      fixture.collect();
    }
  }
  const pool::Address late = ending.take();
  fixture.quarantine.forget(ending.pool);
  CHECK(fixture.quarantine.blocks() == 2);
  CHECK(fixture.quarantine.bytes() == 1024);
  CHECK(ending.pool.blocks.statistics().retired_blocks == 0);
  CHECK(ending.free(late) == Quarantine::Retired::not_a_block);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collect().blocks == 2);
}

TEST_CASE("waiting skips an epoch whose blocks have all been forgotten") {
  QuarantineFixture fixture;
  EndingPool ending(fixture);
  fixture.driver.timeline.submit(fixture.context->handle);
  REQUIRE(ending.free(ending.take()) == Quarantine::Retired::retired);
  fixture.collect();
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.collect();
  fixture.quarantine.forget(ending.pool);
  Quarantine::Cleaned cleaned = fixture.wait();
  if (cleaned.blocks == 0 && cleaned.others_cleaned) {  // past the first epoch, which has nothing left
    cleaned = fixture.wait();
  }
  CHECK(cleaned.blocks == 1);
  CHECK(cleaned.waited);
}

TEST_CASE("an epoch whose blocks have all been forgotten returns its events") {
  QuarantineFixture fixture;
  for (int round = 0; round < 20; ++round) {
    EndingPool ending(fixture);
    fixture.driver.timeline.submit(fixture.context->handle);
    REQUIRE(ending.free(ending.take()) == Quarantine::Retired::retired);
    fixture.collect();
    fixture.quarantine.forget(ending.pool);
    fixture.destroy(ending.context);
    fixture.driver.timeline.finish(fixture.context->handle);
    FakeDriver::current = fixture.context->handle;
    fixture.collect();
  }
  CHECK(fixture.driver.live_events() == 1);
  CHECK(fixture.driver.timeline.dead_uses() == 0);
}
