// A pool whose context has gone: what it had in quarantine is in nobody's way.
#include "catch.h"
#include "policy/quarantine.h"
#include "unit/policy/ward.h"

using namespace ration;
using namespace ration::test;
using policy::Quarantine;

namespace {

// The pool of a second context, in the same quarantine.
struct Going {
  explicit Going(Ward &in) : ward(in), context(in.add_context()), pool(*context) {
    REQUIRE(pool.blocks.add_slab({0x900000000, kMiB, 2}) == pool::AddSlabOutcome::kAdded);
  }
  pool::Address take() {
    pool::NoUpstream none;
    return pool.blocks.allocate(512, none).block.address;
  }
  Quarantine::Retired free(pool::Address address) {
    Quarantine::Ticket ticket;
    std::uint64_t bytes = 0;
    bool due = false;
    return ward.quarantine.retire(pool, address, bytes, ticket, due);
  }

  Ward &ward;
  policy::ContextRef context;
  policy::ContextPool pool;
};

}  // namespace

TEST_CASE("a pool that goes takes its blocks out of quarantine, open or sealed, and no others") {
  Ward ward;
  Going going(ward);
  ward.driver.timeline.submit(ward.context->handle);
  for (const bool seal : {true, false}) {
    ward.free_one();
    REQUIRE(going.free(going.take()) == Quarantine::Retired::retired);
    if (seal) {
      ward.collect();
    }
  }
  const pool::Address late = going.take();
  ward.quarantine.forget(going.pool);
  CHECK(ward.quarantine.blocks() == 2);
  CHECK(ward.quarantine.bytes() == 1024);
  CHECK(going.pool.blocks.statistics().retired_blocks == 0);
  CHECK(going.free(late) == Quarantine::Retired::not_a_block);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collect().blocks == 2);
}

TEST_CASE("waiting looks behind an epoch whose blocks have all gone") {
  Ward ward;
  Going going(ward);
  ward.driver.timeline.submit(ward.context->handle);
  REQUIRE(going.free(going.take()) == Quarantine::Retired::retired);
  ward.collect();
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  ward.collect();
  ward.quarantine.forget(going.pool);
  Quarantine::Cleaned cleaned = ward.quarantine.wait();
  if (cleaned.blocks == 0 && cleaned.others_cleaned) {  // past the first epoch, which has nothing left
    cleaned = ward.quarantine.wait();
  }
  CHECK(cleaned.blocks == 1);
  CHECK(cleaned.waited);
}

TEST_CASE("an epoch whose blocks have all gone gives its events back") {
  Ward ward;
  for (int round = 0; round < 20; ++round) {
    Going going(ward);
    ward.driver.timeline.submit(ward.context->handle);
    REQUIRE(going.free(going.take()) == Quarantine::Retired::retired);
    ward.collect();
    ward.quarantine.forget(going.pool);
    ward.destroy(going.context);
    ward.driver.timeline.finish(ward.context->handle);
    FakeDriver::current = ward.context->handle;
    ward.collect();
  }
  CHECK(ward.driver.live_events() == 1);
  CHECK(ward.driver.timeline.dead_uses() == 0);
}
