// Whose work a fence waits for: the contexts that may have touched the device, and none that is broken for good.
#include "catch.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;

namespace {

// A second context at work, on another device.
struct Neighbour : QuarantineFixture {
  explicit Neighbour(int device = 1) : other(add_context(device)) {
    FakeDriver::current = context->handle;
    driver.timeline.submit(other->handle);
  }
  // As a copy with the device does that is under way with what runs.
  void copy(int device) {
    other->reach.enter(device);
    other->reach.leave(device, contexts.tick());
  }
  // Frees a block and collects once.
  std::uint64_t clean_after_free() {
    free_one();
    return collect().blocks;
  }
  policy::ContextRef other;
};

}  // namespace

TEST_CASE("work on another device that cannot reach a block does not keep it") {
  Neighbour neighbour;
  CHECK(neighbour.clean_after_free() == 1);
}

TEST_CASE("work in another context of the block's device keeps it") {
  Neighbour neighbour(0);
  CHECK(neighbour.clean_after_free() == 0);
  neighbour.driver.timeline.finish(neighbour.other->handle);
  CHECK(neighbour.collect().blocks == 1);
}

TEST_CASE("work of a context that copied to or from the device keeps its blocks until the copy has ended") {
  Neighbour neighbour;
  neighbour.copy(2);
  CHECK(neighbour.clean_after_free() == 1);
  neighbour.copy(0);
  CHECK(neighbour.clean_after_free() == 0);
  neighbour.driver.timeline.finish(neighbour.other->handle);
  CHECK(neighbour.collect().blocks == 1);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 1);
  SECTION("and another copy counts as the first did") {
    neighbour.copy(0);
    CHECK(neighbour.clean_after_free() == 0);
  }
  SECTION("and a copy with a third device makes none of it") {
    neighbour.copy(2);
    CHECK(neighbour.clean_after_free() == 1);
  }
}

TEST_CASE("a fence that was taken before a copy's call returned does not end its reach") {
  Neighbour neighbour;
  neighbour.other->reach.enter(0);
  CHECK(neighbour.clean_after_free() == 0);
  neighbour.other->reach.leave(0, neighbour.contexts.tick());
  neighbour.driver.timeline.finish(neighbour.other->handle);
  CHECK(neighbour.collect().blocks == 1);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 0);
}

TEST_CASE("what a context is given after a copy does not count") {
  Neighbour neighbour;
  neighbour.copy(0);
  neighbour.fences.end_reach(neighbour.other);
  const FakeTimeline::Point copied = neighbour.driver.timeline.submitted_to(neighbour.other->handle);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 0);
  SECTION("once the copy has ended") {
    neighbour.driver.timeline.finish(copied);
    CHECK(neighbour.collect().blocks == 1);
  }
  SECTION("unless another copy, which counts until its own event") {
    neighbour.copy(0);
    neighbour.driver.timeline.finish(copied);
    CHECK(neighbour.collect().blocks == 1);
    CHECK(neighbour.clean_after_free() == 0);
  }
  SECTION("a wait ends with the copy") {
    CHECK(neighbour.quarantine.wait(neighbour.quarantine.reclaimed()).blocks == 1);
    CHECK(neighbour.driver.timeline.is_behind(neighbour.driver.timeline.submitted_to(neighbour.other->handle)));
  }
}

TEST_CASE("a copy that was refused reaches nothing") {
  Neighbour neighbour;
  neighbour.copy(0);
  neighbour.driver.timeline.finish(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 1);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  neighbour.other->reach.enter(0);
  neighbour.other->reach.leave(0, 0);
  CHECK(neighbour.clean_after_free() == 1);
}

TEST_CASE("a call that never returned reaches for ever") {
  Neighbour neighbour;
  neighbour.other->reach.enter(0);
  neighbour.driver.timeline.finish(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 1);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 0);
}

TEST_CASE("a graph reaches all devices until it has ended") {
  Neighbour neighbour;
  neighbour.copy(policy::Reach::kAllDevices);
  CHECK(neighbour.clean_after_free() == 0);
  neighbour.driver.timeline.finish(neighbour.other->handle);
  CHECK(neighbour.collect().blocks == 1);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 1);
}

TEST_CASE("the program's own synchronise ends the reach of what came before it") {
  Neighbour neighbour;
  neighbour.copy(0);
  const std::uint64_t began = neighbour.fences.now();
  neighbour.driver.timeline.finish(neighbour.other->handle);
  policy::FenceTracker::passed(*neighbour.other, began);
  neighbour.driver.timeline.submit(neighbour.other->handle);
  CHECK(neighbour.clean_after_free() == 1);
}

TEST_CASE("work on a device with peer access keeps the peer's blocks, in contexts made later, too") {
  Neighbour neighbour;
  neighbour.contexts.note_peer(1, 0);
  const policy::ContextRef later = neighbour.add_context(1);
  FakeDriver::current = neighbour.context->handle;
  neighbour.driver.timeline.finish(neighbour.other->handle);
  neighbour.driver.timeline.submit(later->handle);
  CHECK(neighbour.clean_after_free() == 0);
}

TEST_CASE("a context whose beginning was not seen may have reached every device") {
  QuarantineFixture fixture;
  CUcontext handle = nullptr;
  REQUIRE(fixture.driver.create(&handle, 1) == CUDA_SUCCESS);
  fixture.contexts.note(handle, 1);
  FakeDriver::current = fixture.context->handle;
  fixture.driver.timeline.submit(handle);
  fixture.free_one();
  CHECK(fixture.collect().blocks == 0);
}

TEST_CASE("once a call cannot be followed, every context counts") {
  Neighbour neighbour;
  neighbour.contexts.note_anywhere();
  CHECK(neighbour.clean_after_free() == 0);
}

TEST_CASE("a context that broke after the free does not keep others' blocks") {
  Neighbour neighbour(0);
  CHECK(neighbour.clean_after_free() == 0);
  SECTION("polled") {
    neighbour.driver.broken[neighbour.other->handle] = CUDA_ERROR_ILLEGAL_ADDRESS;
    const auto cleaned = neighbour.collect();
    CHECK(cleaned.blocks == 1);
    CHECK(cleaned.error == CUDA_SUCCESS);
  }
  SECTION("waited for") {
    neighbour.driver.during_wait = [&] { neighbour.driver.broken[neighbour.other->handle] = CUDA_ERROR_LAUNCH_FAILED; };
    const auto cleaned = neighbour.quarantine.wait(neighbour.quarantine.reclaimed());
    CHECK(cleaned.blocks == 1);
    CHECK(cleaned.error == CUDA_SUCCESS);
  }
  SECTION("not to threads in it") {
    neighbour.driver.broken[neighbour.other->handle] = CUDA_ERROR_ILLEGAL_ADDRESS;
    FakeDriver::current = neighbour.other->handle;
    const auto cleaned = neighbour.collect();
    CHECK(cleaned.blocks == 0);
    CHECK(cleaned.error == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("nor by an error that may pass") {
    neighbour.driver.broken[neighbour.other->handle] = CUDA_ERROR_NOT_PERMITTED;
    const auto cleaned = neighbour.collect();
    CHECK(cleaned.blocks == 0);
    CHECK(cleaned.error == CUDA_ERROR_NOT_PERMITTED);
  }
}

TEST_CASE("a context that was broken before the free does not keep others' blocks") {
  Neighbour neighbour(0);
  neighbour.driver.broken[neighbour.other->handle] = CUDA_ERROR_LAUNCH_TIMEOUT;
  SECTION("with events") {}
  SECTION("by synchronising") {
    driver::real.cuCtxRecordEvent.set(nullptr);
  }
  neighbour.free_one();
  const auto cleaned = neighbour.quarantine.wait(neighbour.quarantine.reclaimed());
  CHECK(cleaned.blocks == 1);
  CHECK(cleaned.error == CUDA_SUCCESS);
}

TEST_CASE("the error of the caller's own context is not taken for another's") {
  Neighbour neighbour(0);
  const policy::ContextRef third = neighbour.add_context(1);
  CHECK(neighbour.clean_after_free() == 0);
  neighbour.driver.broken[third->handle] = CUDA_ERROR_ILLEGAL_ADDRESS;
  FakeDriver::current = third->handle;
  const auto cleaned = neighbour.collect();
  CHECK(cleaned.blocks == 0);
  CHECK(cleaned.error == CUDA_ERROR_ILLEGAL_ADDRESS);
}
