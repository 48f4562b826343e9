// When the device is asked: seals are due after so many frees or bytes, and each costs a bounded number of calls.
#include "catch.h"
#include "policy/quarantine.h"
#include "unit/policy/ward.h"

using namespace ration;
using namespace ration::test;
using policy::Quarantine;

namespace {

// Frees until one says that a seal is due; how many that took.
int frees_until_due(Ward &ward, std::uint64_t bytes = 512) {
  for (int frees = 1; frees <= 10'000; ++frees) {
    if (ward.free_one(bytes)) {
      return frees;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("a seal is due after 1,024 frees") {
  Ward ward;
  CHECK(frees_until_due(ward) == 1024);
  ward.collect();
  CHECK(frees_until_due(ward) == 1024);
}

TEST_CASE("a seal is due after an eighth of the pool's bytes, or after what may well lie about") {
  Ward ward;
  CHECK(frees_until_due(ward, kMiB) == Ward::kBytes / kMiB / 8);
  ward.collect();
  ward.quarantine.set_sizes(Ward::kBytes, Ward::kBytes / 4);
  CHECK(frees_until_due(ward, kMiB) == Ward::kBytes / kMiB / 4);
}

TEST_CASE("epochs grow where the program had to wait, up to four times") {
  Ward ward;
  for (const int frees : {1024, 2048, 4096, 4096}) {
    CHECK(frees_until_due(ward) == frees);
    ward.driver.timeline.submit(ward.context->handle);
    CHECK(ward.quarantine.wait().waited);
  }
}

TEST_CASE("a seal that failed is not tried again at the next free") {
  Ward ward;
  CHECK(frees_until_due(ward) == 1024);
  ward.driver.fails["cuCtxRecordEvent"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(ward.collect().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(ward.quarantine.blocks() == 1024);
  CHECK(frees_until_due(ward) == 1024);
  ward.driver.fails.clear();
  CHECK(ward.collect().blocks == 2048);
  CHECK(frees_until_due(ward) == 1024);
}

TEST_CASE("a seal costs one recorded event for each context, however many blocks it is for") {
  Ward ward;
  ward.add_context();
  ward.add_context(1);
  ward.driver.timeline.submit(ward.context->handle);
  for (int frees = 0; frees < 1024; ++frees) {
    ward.free_one();
  }
  ward.collect();
  CHECK(ward.driver.calls("cuCtxRecordEvent") == 3);
  CHECK(ward.driver.calls("cuEventQuery") <= 3);
}

TEST_CASE("where it must be worthwhile what is open is sealed when nothing is, or when it is much") {
  Ward ward;
  const auto collect = [&] { return ward.quarantine.collect(Quarantine::Sealing::worthwhile); };
  const auto seals = [&] { return ward.driver.calls("cuCtxRecordEvent"); };
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  CHECK(collect().blocks == 0);
  CHECK(seals() == 1);  // nothing was sealed
  ward.free_one();
  CHECK(collect().blocks == 0);
  CHECK(seals() == 1);
  for (int frees = 0; frees < 255; ++frees) {
    ward.free_one();
  }
  CHECK(collect().blocks == 0);
  CHECK(seals() == 2);  // a quarter of an epoch
  ward.driver.timeline.finish(ward.context->handle);
  ward.free_one(2 * kMiB);
  CHECK(collect().blocks == 257);
  CHECK(seals() == 2);  // something was clean
  CHECK(collect().blocks == 1);
  CHECK(seals() == 3);
}

TEST_CASE("a drain waits for everything that was freed, in however many epochs") {
  Ward ward;
  for (int epoch = 0; epoch < 3; ++epoch) {
    ward.driver.timeline.submit(ward.context->handle);
    ward.free_one();
    ward.collect();
  }
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  const Quarantine::Cleaned cleaned = ward.quarantine.drain();
  CHECK(cleaned.blocks == 4);
  CHECK(cleaned.waited);
  CHECK(ward.retired() == 0);
}

TEST_CASE("a drain answers the error of its wait, and of its seal") {
  Ward ward;
  ward.driver.timeline.submit(ward.context->handle);
  ward.free_one();
  ward.driver.fails["cuEventSynchronize"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(ward.quarantine.drain().error == CUDA_ERROR_ILLEGAL_ADDRESS);
  ward.free_one();
  ward.driver.fails = {{"cuCtxRecordEvent", CUDA_ERROR_LAUNCH_FAILED}};
  CHECK(ward.quarantine.drain().error == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(ward.retired() == 2);
}
