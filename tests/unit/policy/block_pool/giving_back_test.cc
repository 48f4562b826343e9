// What the pools return to the driver before a request is denied, and the reason of a denial.
#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

using Sizes = std::vector<std::uint64_t>;

TEST_CASE("a wholly free slab goes back to the driver if the device is idle, and not while it is at work") {
  for (const bool idle : {true, false}) {
    INFO(idle);
    FakeDriver driver;
    PooledProgram program(driver, limit_of(6 * kMiB));
    const CUcontext context = program.create();
    const CUdeviceptr first = program.take(kWhole);
    REQUIRE(program.take(3 * kMiB) != kUntouched);
    program.free(first);
    if (!idle) {
      driver.timeline.submit(context);
    }
    CHECK((program.take(3 * kMiB) != kUntouched) == idle);
    CHECK(driver.calls("cuMemFree_v2") == (idle ? 1 : 0));
    CHECK(driver.calls("cuEventSynchronize") == 0);
    CHECK(program.early() == 0);
  }
}

TEST_CASE("slabs that are too small are returned for one that is large enough") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(6 * kMiB), folder / "log");
  program.create();
  program.free(program.take(kWhole));
  CHECK(program.take(6 * kMiB) != kUntouched);
  CHECK(driver.asked().back() == 6 * kMiB);
  CHECK(driver.live_blocks() == 1);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(of_type(lines, "slab_free").size() == 1);
  REQUIRE(of_type(lines, "trim").size() == 1);
  CHECK(of_type(lines, "trim")[0].at("bytes") == 2 * kMiB);
  CHECK(sums_of(lines).reserved.at(0) == program.charged());
}

TEST_CASE("no slab is returned for a request that would not fit anyway") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(8 * kMiB));
  program.create();
  const CUdeviceptr kept = program.take(kWhole);
  program.free(program.take(3 * kMiB));
  CHECK(program.take(7 * kMiB) == kUntouched);
  CHECK(program.take(20 * kMiB) == kUntouched);
  CHECK(driver.calls("cuMemFree_v2") == 0);
  CHECK(program.denied(events::Reason::limit) == 2);
  CHECK(program.free(kept) == CUDA_SUCCESS);
}

TEST_CASE("free slabs of another context's pool are returned, and a denial names what it cannot return") {
  const ScratchFolder folder;
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB), folder / "log");
  const CUcontext first = program.create();
  const CUdeviceptr small = program.take(1024);
  const CUcontext second = program.create();
  CHECK(program.take(kWhole) != kUntouched);
  CHECK(program.take(kWhole) == kUntouched);
  CHECK(program.denied(events::Reason::pool_holds) == 0);
  CHECK(program.take(kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::pool_holds) == 1);  // the first one's slab has as much, beside its block
  FakeDriver::current = first;
  program.free(small);
  FakeDriver::current = second;
  CHECK(program.take(kMiB) != kUntouched);
  CHECK(driver.live_blocks() == 2);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(of_type(lines, "slab_free").at(0).at("ctx") == 1);
  CHECK(sums_of(lines).reserved_peak.at(0) <= 4 * kMiB);
}

TEST_CASE("a request outside the pool gets its free slabs, or is denied because the pool holds them") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB));
  program.create();
  const CUdeviceptr address = program.take(1024);
  CHECK(program.take_direct(3 * kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::pool_holds) == 1);
  program.free(address);
  CHECK(program.take_direct(3 * kMiB) != kUntouched);
  CHECK(program.charged() == 3 * kMiB);
  CHECK(program.take_direct(3 * kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::limit) == 1);
}

TEST_CASE("if the device is full, free slabs are returned too, and the reason is the device") {
  FakeDriver driver;
  driver.taken_by_others = driver.total - 4 * kMiB;
  PooledProgram program(driver, limit_of(100 * kMiB));
  program.create();
  program.free(program.take(kWhole));
  CHECK(program.take(3 * kMiB) != kUntouched);
  CHECK(program.charged() == 3 * kMiB);
  CHECK(program.take(3 * kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::device) == 1);
  program.free(program.take(1024));
  CHECK(program.take_direct(2 * kMiB) == kUntouched);
  CHECK(program.denied(events::Reason::device) == 2);
  CHECK(program.charged() > 3 * kMiB);  // and nothing, where that would not suffice
}

TEST_CASE("a slab that the driver does not take back stays the pool's") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(4 * kMiB));
  program.create();
  program.free(program.take(kWhole));
  driver.fails["cuMemFree_v2"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.take(3 * kMiB) == kUntouched);
  CHECK(program.charged() == 2 * kMiB);
  CHECK(program.take(kMiB) != kUntouched);
  CHECK(driver.asked() == Sizes{2 * kMiB});
}
