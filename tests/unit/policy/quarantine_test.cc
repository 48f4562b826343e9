// When a freed block is clean: every context is through with what was submitted before the free.
#include "policy/quarantine.h"

#include "catch.h"
#include "unit/policy/ward.h"

using namespace ration;
using namespace ration::test;
using policy::Quarantine;

TEST_CASE("a freed block is clean once every context got past its free") {
  Ward ward;
  const policy::ContextRef other = ward.add_context(1);
  ward.driver.timeline.submit(ward.context->handle);
  ward.driver.timeline.submit(other->handle);
  ward.free_one();
  CHECK(ward.collect().blocks == 0);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collect().blocks == 0);
  CHECK(ward.retired() == 1);
  ward.driver.timeline.finish(other->handle);
  CHECK(ward.collect().blocks == 1);
  CHECK(ward.retired() == 0);
  CHECK(ward.quarantine.blocks() == 0);
  CHECK(ward.quarantine.bytes() == 0);
}

TEST_CASE("work that was submitted after the free is not waited for") {
  Ward ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  ward.collect();  // seals
  ward.driver.timeline.submit(ward.context->handle);
  const FakeTimeline::Point later = ward.driver.timeline.submitted();
  CHECK(ward.quarantine.wait().blocks == 1);
  CHECK(ward.driver.timeline.is_behind(later));
  CHECK(ward.driver.calls("cuCtxSynchronize") == 0);
}

TEST_CASE("a block that is freed after the seal is not cleaned with those before it") {
  Ward ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  ward.collect();
  const FakeTimeline::Point first = ward.driver.timeline.submitted();
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  ward.driver.timeline.finish(first);
  CHECK(ward.collect().blocks == 1);
  CHECK(ward.retired() == 1);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collect().blocks == 1);
}

TEST_CASE("collecting never waits, waiting waits for the oldest epoch alone") {
  Ward ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  CHECK_FALSE(ward.collect().waited);
  const FakeTimeline::Point first = ward.driver.timeline.submitted();
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  CHECK_FALSE(ward.collect().waited);
  CHECK(ward.driver.calls("cuEventSynchronize") == 0);
  const Quarantine::Cleaned cleaned = ward.quarantine.wait();
  CHECK(cleaned.waited);
  CHECK(cleaned.blocks == 1);
  CHECK_FALSE(ward.driver.timeline.is_behind(first));
  CHECK(ward.driver.timeline.is_behind(ward.driver.timeline.submitted()));
}

TEST_CASE("waiting with nothing in quarantine asks the driver nothing") {
  Ward ward;
  const Quarantine::Cleaned cleaned = ward.quarantine.wait();
  CHECK(cleaned.blocks == 0);
  CHECK_FALSE(cleaned.waited);
  CHECK(ward.driver.calls("cuEventSynchronize") + ward.driver.calls("cuCtxRecordEvent") == 0);
}

// The first seal has recorded its event when the second begins and ends: whatever passes the first says nothing of it.
TEST_CASE("a seal inside another one's is not taken for it") {
  Ward ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  FakeTimeline::Point first;
  ward.driver.after_record = [&] {
    ward.driver.after_record = nullptr;
    first = ward.driver.timeline.submitted();
    ward.driver.timeline.submit(ward.context->handle);
    ward.free_one();
    CHECK(ward.collect().blocks == 0);
  };
  CHECK(ward.collect().blocks == 0);
  ward.driver.timeline.finish(first);
  CHECK(ward.collect().blocks == 1);
  CHECK(ward.retired() == 1);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collect().blocks == 1);
}

TEST_CASE("a context that has gone is through with everything, and its events are not touched again") {
  Ward ward;
  const policy::ContextRef other = ward.add_context();
  ward.driver.timeline.submit(other->handle);
  ward.free_one();
  CHECK(ward.collect().blocks == 0);
  ward.destroy(other);
  FakeDriver::current = ward.context->handle;
  CHECK(ward.collect().blocks == 1);
  ward.free_one();
  CHECK(ward.collect().blocks == 1);
  CHECK(ward.driver.timeline.dead_uses() == 0);
}

TEST_CASE("a new context never gets an event of one that has gone") {
  Ward ward;
  for (int round = 0; round < 20; ++round) {
    policy::ContextRef other = ward.add_context();
    const policy::Context *const place = other.get();
    ward.free_one();
    CHECK(ward.collect().blocks == 1);
    ward.destroy(other);
    FakeDriver::current = ward.context->handle;
    other = nullptr;
    if (round > 0 && ward.add_context().get() == place) {
      ward.free_one();
      CHECK(ward.collect().blocks == 1);
    }
  }
  CHECK(ward.driver.timeline.dead_uses() == 0);
}

TEST_CASE("a thread on which nothing is current can ask too") {
  Ward ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  FakeDriver::current = nullptr;
  CHECK(ward.collect().error == CUDA_SUCCESS);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collect().blocks == 1);
  CHECK(FakeDriver::current == nullptr);
}

TEST_CASE("a context that the driver says is destroyed holds nothing back") {
  Ward ward;
  const policy::ContextRef other = ward.add_context();
  REQUIRE(ward.driver.destroy(other->handle) == CUDA_SUCCESS);  // past Ration
  FakeDriver::current = ward.context->handle;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  CHECK(ward.collect().blocks == 0);
  ward.driver.timeline.finish(ward.context->handle);
  CHECK(ward.collect().blocks == 1);
}

TEST_CASE("while a context is being destroyed nothing is sealed, and afterwards everything is") {
  for (const bool refused : {true, false}) {
    INFO(refused);
    Ward ward;
    const policy::ContextRef other = ward.add_context();
    FakeDriver::current = ward.context->handle;
    ward.driver.timeline.submit(other->handle);
    ward.free_one();
    other->begin_end();
    const Quarantine::Cleaned cleaned = ward.collect();
    CHECK(cleaned.ending);
    CHECK(cleaned.blocks == 0);
    CHECK(ward.driver.calls("cuCtxRecordEvent") == 0);
    if (refused) {
      other->refuse_end();
      CHECK(ward.collect().blocks == 0);
      ward.driver.timeline.finish(other->handle);
    } else {
      ward.destroy(other);
    }
    CHECK(ward.collect().blocks == 1);
  }
}

TEST_CASE("an error of a look at the device cleans nothing and is what is answered") {
  Ward ward;
  ward.free_one();
  ward.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(ward.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(ward.quarantine.wait().error == CUDA_ERROR_LAUNCH_FAILED);
  ward.driver.fails = {{"cuEventCreate", CUDA_ERROR_ECC_UNCORRECTABLE}};
  ward.driver.timeline.submit(ward.context->handle);
  const policy::ContextRef other = ward.add_context();  // of which no event is spare
  CHECK(ward.collect().error == CUDA_ERROR_ECC_UNCORRECTABLE);
  ward.driver.fails = {{"cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS}};
  CHECK(ward.collect().error == CUDA_ERROR_ILLEGAL_ADDRESS);
  ward.driver.fails = {{"cuEventSynchronize", CUDA_ERROR_LAUNCH_TIMEOUT}};
  CHECK(ward.quarantine.wait().error == CUDA_ERROR_LAUNCH_TIMEOUT);
  CHECK(ward.retired() == 1);
  ward.driver.fails.clear();
  CHECK(ward.quarantine.wait().blocks == 1);
}

TEST_CASE("events are used again") {
  Ward ward;
  ward.add_context();
  for (int round = 0; round < 50; ++round) {
    ward.free_one();
    CHECK(ward.collect().blocks == 1);
  }
  CHECK(ward.driver.live_events() == 2);
  CHECK(ward.driver.calls("cuEventCreate") == 2);
}

TEST_CASE("a block is not handed out before its free is in the log") {
  Ward ward;
  Quarantine::Ticket writing = ward.retire(ward.take());
  CHECK(ward.collect().blocks == 0);
  writing.close();
  CHECK(ward.collect().blocks == 1);
  Quarantine::Ticket first = ward.retire(ward.take());
  first = ward.retire(ward.take());  // closes the one before
  CHECK(ward.collect().blocks == 0);
  first = Quarantine::Ticket();
  CHECK(ward.collect().blocks == 2);
}

TEST_CASE("only the start of a live block can be freed, and only once") {
  Ward ward;
  const pool::Address address = ward.take(4096);
  Quarantine::Ticket ticket;
  std::uint64_t bytes = 7;
  bool due = true;
  CHECK(ward.quarantine.retire(*ward.pool, address + 512, bytes, ticket, due) == Quarantine::Retired::not_a_block);
  CHECK_FALSE(due);
  CHECK(ward.quarantine.retire(*ward.pool, address, bytes, ticket, due) == Quarantine::Retired::retired);
  CHECK(bytes == 4096);
  CHECK(ward.quarantine.retire(*ward.pool, address, bytes, ticket, due) == Quarantine::Retired::not_a_block);
  CHECK(ward.quarantine.blocks() == 1);
}
