// When the device is asked: seals are due after so many frees or bytes, and each costs a bounded number of calls.
#include "catch.h"
#include "policy/block_pool/quarantine.h"
#include "unit/policy/quarantine_fixture.h"

using namespace ration;
using namespace ration::test;
using policy::Quarantine;

namespace {

// Frees until one says that a seal is due; the number of frees.
int frees_until_due(QuarantineFixture &fixture, std::uint64_t bytes = 512) {
  for (int frees = 1; frees <= 10'000; ++frees) {
    if (fixture.free_one(bytes)) {
      return frees;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("a seal is due after 1,024 frees") {
  QuarantineFixture fixture;
  CHECK(frees_until_due(fixture) == 1024);
  fixture.collect();
  CHECK(frees_until_due(fixture) == 1024);
}

TEST_CASE("a seal is due after an eighth of the pool's bytes, or after the slack if that is more") {
  QuarantineFixture fixture;
  CHECK(frees_until_due(fixture, kMiB) == QuarantineFixture::kBytes / kMiB / 8);
  fixture.collect();
  fixture.quarantine.set_sizes(QuarantineFixture::kBytes, QuarantineFixture::kBytes / 4, QuarantineFixture::kUnlimited);
  CHECK(frees_until_due(fixture, kMiB) == QuarantineFixture::kBytes / kMiB / 4);
}

TEST_CASE("epochs grow when the program had to wait, up to four times") {
  QuarantineFixture fixture;
  for (const int frees : {1024, 2048, 4096, 4096}) {
    CHECK(frees_until_due(fixture) == frees);
    fixture.driver.timeline.submit(fixture.context->handle);
    CHECK(fixture.wait().waited);
  }
}

TEST_CASE("a seal that failed is not tried again at the next free") {
  QuarantineFixture fixture;
  CHECK(frees_until_due(fixture) == 1024);
  fixture.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(fixture.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(fixture.quarantine.blocks() == 1024);
  CHECK(frees_until_due(fixture) == 1024);
  fixture.driver.fails.clear();
  CHECK(fixture.collect().blocks == 2048);
  CHECK(frees_until_due(fixture) == 1024);
}

TEST_CASE("a seal costs one recorded event for each context of the device, however many blocks it is for") {
  QuarantineFixture fixture;
  fixture.add_context();
  fixture.add_context(1);
  fixture.driver.timeline.submit(fixture.context->handle);
  for (int frees = 0; frees < 1024; ++frees) {
    fixture.free_one();
  }
  fixture.collect();
  CHECK(fixture.driver.calls("cuCtxRecordEvent") == 2);
  CHECK(fixture.driver.calls("cuEventQuery") <= 2);
}

TEST_CASE("a worthwhile collect seals if nothing is sealed, or if much is open") {
  QuarantineFixture fixture;
  const auto collect = [&] { return fixture.quarantine.collect(Quarantine::Sealing::worthwhile); };
  const auto seals = [&] { return fixture.driver.calls("cuCtxRecordEvent"); };
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  CHECK(collect().blocks == 0);
  CHECK(seals() == 1);  // nothing was sealed
  fixture.free_one();
  CHECK(collect().blocks == 0);
  CHECK(seals() == 1);
  for (int frees = 0; frees < 255; ++frees) {
    fixture.free_one();
  }
  CHECK(collect().blocks == 0);
  CHECK(seals() == 2);  // a quarter of an epoch
  fixture.driver.timeline.finish(fixture.context->handle);
  fixture.free_one(2 * kMiB);
  CHECK(collect().blocks == 257);
  CHECK(seals() == 2);  // something was clean
  CHECK(collect().blocks == 1);
  CHECK(seals() == 3);
}

TEST_CASE("a drain waits for everything that was freed, in however many epochs") {
  QuarantineFixture fixture;
  for (int epoch = 0; epoch < 3; ++epoch) {
    fixture.driver.timeline.submit(fixture.context->handle);
    fixture.free_one();
    fixture.collect();
  }
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  const Quarantine::Cleaned cleaned = fixture.quarantine.drain();
  CHECK(cleaned.blocks == 4);
  CHECK(cleaned.waited);
  CHECK(fixture.retired() == 0);
}

TEST_CASE("a drain returns the error of its wait, and of its seal") {
  QuarantineFixture fixture;
  fixture.driver.timeline.submit(fixture.context->handle);
  fixture.free_one();
  fixture.driver.fails["cuEventSynchronize"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(fixture.quarantine.drain().error == CUDA_ERROR_ILLEGAL_ADDRESS);
  fixture.free_one();
  fixture.driver.fails = {{"cuCtxRecordEvent", CUDA_ERROR_LAUNCH_FAILED}};
  CHECK(fixture.quarantine.drain().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(fixture.retired() == 2);
}
