// Slabs that no block is in become one before one of few large blocks is placed.
#include <algorithm>
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

constexpr std::uint64_t kLimit = 128 * kMiB;

// Two slabs that fill the limit, and nothing in them.
std::unique_ptr<PooledProgram> two_free_slabs(FakeDriver &driver, const std::string &log = "") {
  auto limits = limit_of(kLimit);
  limits->plan = {kLimit, 32 * kMiB, 0};
  auto program = std::make_unique<PooledProgram>(driver, std::move(limits), log);
  program->create();
  const CUdeviceptr first = program->take(16 * kMiB);
  const CUdeviceptr second = program->take(16 * kMiB);
  REQUIRE(driver.live_blocks() == 2);
  REQUIRE(program->charged() == kLimit);
  REQUIRE(program->free(first) == CUDA_SUCCESS);
  REQUIRE(program->free(second) == CUDA_SUCCESS);
  return program;
}

}  // namespace

TEST_CASE("after small blocks have left, blocks of half the limit fit twice") {
  const ScratchFolder folder;
  FakeDriver driver;
  const auto program = two_free_slabs(driver, folder / "log");
  CHECK(program->take(kLimit / 2) != kUntouched);
  CHECK(program->take(kLimit / 2) != kUntouched);
  CHECK(driver.live_blocks() == 1);
  CHECK(program->charged() == kLimit);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(of_type(lines, "slab_alloc").back().at("why") == "merge");
  REQUIRE(of_type(lines, "trim").size() == 1);
  CHECK(of_type(lines, "trim")[0].at("slabs") == 2);
  CHECK(sums_of(lines).reserved.at(0) == kLimit);
}

TEST_CASE("without a log the fast path leaves such a request to the merge") {
  FakeDriver driver;
  const auto program = two_free_slabs(driver);
  CHECK(program->take(kLimit / 2) != kUntouched);
  CHECK(program->take(kLimit / 2) != kUntouched);
  CHECK(driver.live_blocks() == 1);
}

TEST_CASE("slabs are not merged while the device is at work, and nothing waits for it") {
  FakeDriver driver;
  const auto program = two_free_slabs(driver);
  program->synchronise();
  driver.timeline.submit(FakeDriver::current);
  CHECK(program->take(kLimit / 2) != kUntouched);
  CHECK(driver.calls("cuMemFree_v2") == 0);
  CHECK(driver.calls("cuEventSynchronize") == 0);
}

TEST_CASE("a slab with a live block stays, and so does one alone") {
  FakeDriver driver;
  auto limits = limit_of(kLimit);
  limits->plan = {kLimit, 32 * kMiB, 0};
  PooledProgram program(driver, std::move(limits));
  program.create();
  const CUdeviceptr first = program.take(16 * kMiB);
  const CUdeviceptr second = program.take(16 * kMiB);
  CHECK(program.free(second) == CUDA_SUCCESS);
  CHECK(program.take(kLimit / 2) != kUntouched);
  CHECK(driver.calls("cuMemFree_v2") == 0);
  CHECK(program.free(first) == CUDA_SUCCESS);
}

TEST_CASE("a small request merges nothing") {
  FakeDriver driver;
  const auto program = two_free_slabs(driver);
  program->synchronise();
  CHECK(program->take(kMiB / 2) != kUntouched);
  CHECK(driver.calls("cuMemFree_v2") == 0);
}

TEST_CASE("free slabs grow into a rest of the limit where one slab then holds a block more") {
  FakeDriver driver;
  PooledProgram program(driver, limit_of(kLimit));
  program.create();
  CHECK(program.free(program.take(39 * kMiB)) == CUDA_SUCCESS);  // 89 MiB are left of the limit
  for (int block = 0; block < 4; ++block) {
    CHECK(program.take(32 * kMiB) != kUntouched);
  }
  CHECK(program.charged() == kLimit);
}

TEST_CASE("a slab that the driver does not take back keeps its place in the pool") {
  FakeDriver driver;
  const auto program = two_free_slabs(driver);
  program->synchronise();
  driver.fails = {{"cuMemFree_v2", CUDA_ERROR_INVALID_VALUE}};
  CHECK(program->take(kLimit / 2) != kUntouched);
  driver.fails = {};
  CHECK(program->charged() == kLimit);
}

TEST_CASE("where the driver has less for the merged slab, the request gets what there is") {
  FakeDriver driver;
  const auto program = two_free_slabs(driver);
  program->synchronise();
  driver.most_at_once = 100 * kMiB;
  CHECK(program->take(kLimit / 2) != kUntouched);
  CHECK(program->charged() <= 100 * kMiB);
}

TEST_CASE("no request is refused while another thread merges") {
  for (int round = 0; round < 200; ++round) {
    FakeDriver driver;
    const auto program = two_free_slabs(driver);
    const CUcontext context = FakeDriver::current;
    std::atomic<int> refused{0};
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
          FakeDriver::current = context;
          refused += program->take(kLimit / 4) == kUntouched ? 1 : 0;
        });
      }
    }
    CHECK(refused == 0);
  }
}
