// When a freed block is clean: every context is through with what was submitted before the free.
#include "policy/block_pool/quarantine.h"

#include "catch.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::Quarantine;

TEST_CASE("a freed block is clean once every context that can reach it got past its free") {
  QuarantineFixture fixture;
  fixture.contexts.note_peer(1, 0);
  const policy::ContextRef other = fixture.add_context(1);
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.driver.timeline.submit(other->handle);
  fixture.free_one();
  CHECK(fixture.collect().blocks == 0);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collect().blocks == 0);
  CHECK(fixture.retired() == 1);
  fixture.driver.timeline.finish(other->handle);
  CHECK(fixture.collect().blocks == 1);
  CHECK(fixture.retired() == 0);
  CHECK(fixture.quarantine.blocks() == 0);
  CHECK(fixture.quarantine.bytes() == 0);
}

TEST_CASE("work that was submitted after the free is not waited for") {
  QuarantineFixture fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.collect();  // seals
  fixture.driver.timeline.submit(fixture.context->handle);
  const FakeTimeline::Point later = fixture.driver.timeline.submitted();
  CHECK(fixture.wait().blocks == 1);
  CHECK(fixture.driver.timeline.is_behind(later));
  CHECK(fixture.driver.calls("cuCtxSynchronize") == 0);
}

TEST_CASE("a block that is freed after the seal is not cleaned with those before it") {
  QuarantineFixture fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.collect();
  const FakeTimeline::Point first = fixture.driver.timeline.submitted();
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.driver.timeline.finish(first);
  CHECK(fixture.collect().blocks == 1);
  CHECK(fixture.retired() == 1);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collect().blocks == 1);
}

TEST_CASE("collecting never waits, waiting waits for the oldest epoch alone") {
  QuarantineFixture fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  CHECK_FALSE(fixture.collect().waited);
  const FakeTimeline::Point first = fixture.driver.timeline.submitted();
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  CHECK_FALSE(fixture.collect().waited);
  CHECK(fixture.driver.calls("cuEventSynchronize") == 0);
  const Quarantine::Cleaned cleaned = fixture.wait();
  CHECK(cleaned.waited);
  CHECK(cleaned.blocks == 1);
  CHECK_FALSE(fixture.driver.timeline.is_behind(first));
  CHECK(fixture.driver.timeline.is_behind(fixture.driver.timeline.submitted()));
}

TEST_CASE("waiting with nothing in quarantine asks the driver nothing") {
  QuarantineFixture fixture;
  const Quarantine::Cleaned cleaned = fixture.wait();
  CHECK(cleaned.blocks == 0);
  CHECK_FALSE(cleaned.waited);
  CHECK(fixture.driver.calls("cuEventSynchronize") + fixture.driver.calls("cuCtxRecordEvent") == 0);
}

// The first seal has recorded its event when the second begins and ends: passing the first says nothing of the second.
TEST_CASE("a seal during another seal does not count for it") {
  QuarantineFixture fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  FakeTimeline::Point first;
  fixture.driver.after_record = [&] {
    fixture.driver.after_record = nullptr;
    first = fixture.driver.timeline.submitted();
    fixture.driver.timeline.submit(fixture.context->handle);
    fixture.free_one();
    CHECK(fixture.collect().blocks == 0);
  };
  CHECK(fixture.collect().blocks == 0);
  fixture.driver.timeline.finish(first);
  CHECK(fixture.collect().blocks == 1);
  CHECK(fixture.retired() == 1);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collect().blocks == 1);
}

TEST_CASE("an ended context counts as passed, and its events are not used again") {
  QuarantineFixture fixture;
  const policy::ContextRef other = fixture.add_context();
  fixture.driver.timeline.submit(other->handle);
  fixture.free_one();
  CHECK(fixture.collect().blocks == 0);
  fixture.destroy(other);
  FakeDriver::current = fixture.context->handle;
  CHECK(fixture.collect().blocks == 1);
  fixture.free_one();
  CHECK(fixture.collect().blocks == 1);
  CHECK(fixture.driver.timeline.dead_uses() == 0);
}

TEST_CASE("a new context never gets an event of one that has ended") {
  QuarantineFixture fixture;
  for (int round = 0; round < 20; ++round) {
    policy::ContextRef other = fixture.add_context();
    const policy::Context *const place = other.get();
    fixture.free_one();
    CHECK(fixture.collect().blocks == 1);
    fixture.destroy(other);
    FakeDriver::current = fixture.context->handle;
    other = nullptr;
    if (round > 0 && fixture.add_context().get() == place) {
      fixture.free_one();
      CHECK(fixture.collect().blocks == 1);
    }
  }
  CHECK(fixture.driver.timeline.dead_uses() == 0);
}

TEST_CASE("a thread with no current context can query fences too") {
  QuarantineFixture fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  FakeDriver::current = nullptr;
  CHECK(fixture.collect().error == CUDA_SUCCESS);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collect().blocks == 1);
  CHECK(FakeDriver::current == nullptr);
}

TEST_CASE("a context that the driver says is destroyed holds nothing back") {
  QuarantineFixture fixture;
  const policy::ContextRef other = fixture.add_context();
  REQUIRE(fixture.driver.destroy(other->handle) == CUDA_SUCCESS);  // past Ration
  FakeDriver::current = fixture.context->handle;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  CHECK(fixture.collect().blocks == 0);
  fixture.driver.timeline.finish(fixture.context->handle);
  CHECK(fixture.collect().blocks == 1);
}

TEST_CASE("while a context is being destroyed nothing is sealed, and afterwards everything is") {
  for (const bool refused : {true, false}) {
    INFO(refused);
    QuarantineFixture fixture;
    const policy::ContextRef other = fixture.add_context();
    FakeDriver::current = fixture.context->handle;
    fixture.driver.timeline.submit(other->handle);
    fixture.free_one();
    other->begin_end();
    const Quarantine::Cleaned cleaned = fixture.collect();
    CHECK(cleaned.ending);
    CHECK(cleaned.blocks == 0);
    CHECK(fixture.driver.calls("cuCtxRecordEvent") == 0);
    if (refused) {
      other->refuse_end();
      CHECK(fixture.collect().blocks == 0);
      fixture.driver.timeline.finish(other->handle);
    } else {
      fixture.destroy(other);
    }
    CHECK(fixture.collect().blocks == 1);
  }
}

TEST_CASE("an error of a driver call cleans nothing and is returned") {
  QuarantineFixture fixture;
  fixture.free_one();
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(fixture.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(fixture.wait().error == CUDA_ERROR_LAUNCH_FAILED);
  fixture.driver.fails = {{"cuEventCreate", CUDA_ERROR_OPERATING_SYSTEM}};
  fixture.driver.timeline.submit(fixture.context->handle);
  const policy::ContextRef other = fixture.add_context();  // of which no event is spare
  CHECK(fixture.collect().error == CUDA_ERROR_OPERATING_SYSTEM);
  fixture.driver.fails = {{"cuEventQuery", CUDA_ERROR_UNKNOWN}};
  CHECK(fixture.collect().error == CUDA_ERROR_UNKNOWN);
  fixture.driver.fails = {{"cuEventSynchronize", CUDA_ERROR_SYSTEM_NOT_READY}};
  CHECK(fixture.wait().error == CUDA_ERROR_SYSTEM_NOT_READY);
  CHECK(fixture.retired() == 1);
  fixture.driver.fails.clear();
  CHECK(fixture.wait().blocks == 1);
}

TEST_CASE("events are reused") {
  QuarantineFixture fixture;
  fixture.add_context();
  for (int round = 0; round < 50; ++round) {
    fixture.free_one();
    CHECK(fixture.collect().blocks == 1);
  }
  CHECK(fixture.driver.live_events() == 2);
  CHECK(fixture.driver.calls("cuEventCreate") == 2);
}

TEST_CASE("a block is not handed out before its free is in the log") {
  QuarantineFixture fixture;
  Quarantine::PendingRecord writing = fixture.retire(fixture.take());
  CHECK(fixture.collect().blocks == 0);
  writing.reset();
  CHECK(fixture.collect().blocks == 1);
  Quarantine::PendingRecord first = fixture.retire(fixture.take());
  first = fixture.retire(fixture.take());  // closes the one before
  CHECK(fixture.collect().blocks == 0);
  first = Quarantine::PendingRecord();
  CHECK(fixture.collect().blocks == 2);
}

TEST_CASE("only the start of a live block can be freed, and only once") {
  QuarantineFixture fixture;
  const pool::Address address = fixture.take(4096);
  Quarantine::PendingRecord pending;
  std::uint64_t bytes = 7;
  bool due = true;
  CHECK(fixture.quarantine.retire(*fixture.pool, address + 512, bytes, pending, due) ==
        Quarantine::Retired::not_a_block);
  CHECK_FALSE(due);
  CHECK(fixture.quarantine.retire(*fixture.pool, address, bytes, pending, due) == Quarantine::Retired::retired);
  CHECK(bytes == 4096);
  CHECK(fixture.quarantine.retire(*fixture.pool, address, bytes, pending, due) == Quarantine::Retired::not_a_block);
  CHECK(fixture.quarantine.blocks() == 1);
}
