// The limit: what is granted, what is refused, and what a refusal leaves behind.
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("blocks of 100 MiB fit ten times under a limit of 1 GiB, then the answer is out of memory") {
  FakeDriver driver;
  Program program(limit_of(1024 * kMiB));
  program.create();
  for (int i = 0; i < 10; ++i) {
    CHECK(program.take(100 * kMiB) != kUntouched);
  }
  CHECK(program.take(100 * kMiB) == kUntouched);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.denied(events::Reason::limit) == 1);
  CHECK(driver.calls("cuMemAlloc_v2") == 10);
  CHECK(program.charged() == driver.used(0));
}

TEST_CASE("a refusal leaves the address untouched and takes nothing") {
  FakeDriver driver;
  Program program(limit_of(100));
  program.create();
  CHECK(program.take(101) == kUntouched);
  CHECK(program.take(UINT64_MAX) == kUntouched);
  CHECK(driver.calls("cuMemAlloc_v2") == 0);
  CHECK(program.charged() == 0);
  CHECK(program.take(100) != kUntouched);
}

TEST_CASE("each device is held to its own limit") {
  FakeDriver driver;
  Program program(limit_of(1000));
  const CUcontext first = program.create(0);
  program.create(1);
  CHECK(program.take(1000) != kUntouched);
  CHECK(program.take(1) == kUntouched);
  FakeDriver::current = first;
  CHECK(program.take(1000) != kUntouched);
  CHECK(program.take(1) == kUntouched);
  CHECK(program.denied(events::Reason::limit, 0) == 1);
  CHECK(program.denied(events::Reason::limit, 1) == 1);
}

TEST_CASE("the driver's own out of memory goes back verbatim, with the device as its reason") {
  FakeDriver driver;
  Program program;
  program.create();
  driver.taken_by_others = driver.total - 10;
  CHECK(program.take(11) == kUntouched);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(program.denied(events::Reason::device) == 1);
  CHECK(program.denied(events::Reason::limit) == 0);
  CHECK(program.charged() == 0);
}

TEST_CASE("another error of the driver goes back verbatim and is counted, an invalid context is not") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(program.take(10) == kUntouched);
  CHECK(program.last == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(program.tally().failed_allocs == 1);
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_INVALID_CONTEXT;
  program.take(10);
  CHECK(program.last == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.tally().failed_allocs == 1);
  CHECK(program.charged() == 0);
}

TEST_CASE("with no current context the answer is the driver's, beyond the limit too") {
  FakeDriver driver;
  Program program(limit_of(1000));
  CHECK(program.take(10) == kUntouched);
  CHECK(program.last == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(program.take(2000) == kUntouched);
  CHECK(program.last == CUDA_ERROR_INVALID_CONTEXT);
  driver.fails["cuCtxGetCurrent"] = driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_NOT_INITIALIZED;
  program.take(2000);
  CHECK(program.last == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(program.denied(events::Reason::limit) == 0);
}

TEST_CASE("what the driver takes less than it was thought to is given back to the limit") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.create();
  CUdeviceptr address = kUntouched;
  CHECK(program.allocate(5120, 9216, 6144, &address) == CUDA_SUCCESS);
  CHECK(program.charged() == 6144);
  CHECK(program.take(4096) != kUntouched);
}

TEST_CASE("what the driver takes more than it was thought to is held to the limit") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.create();
  CUdeviceptr address = kUntouched;
  CHECK(program.allocate(5120, 5120, 6144, &address) == CUDA_SUCCESS);
  CHECK(program.charged() == 6144);
  address = kUntouched;
  CHECK(program.allocate(4096, 4096, 4097, &address) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(address == kUntouched);
  CHECK(driver.live_blocks() == 1);
  CHECK(program.charged() == 6144);
}

TEST_CASE("eight threads that race for one limit get exactly what it holds") {
  constexpr std::uint64_t kBlock = 1024;
  constexpr std::uint64_t kBlocks = 400;
  FakeDriver driver;
  Program program(limit_of(kBlock * kBlocks + kBlock - 1));
  const CUcontext context = program.create();
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      FakeDriver::current = context;
      CUdeviceptr address = 0;
      while (program.allocate(kBlock, &address) == CUDA_SUCCESS) {
        ++taken;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(taken == kBlocks);
  CHECK(driver.live_blocks() == kBlocks);
  CHECK(program.charged() == kBlock * kBlocks);
  CHECK(program.denied(events::Reason::limit) == 8);
}

TEST_CASE("a denial in the log says what was held, what was left and why") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(10240), folder / "log");
  program.create(1);
  driver.taken_by_others = driver.total - 8192;
  program.take(6144);
  program.take(5120);
  program.take(3072);
  const std::vector<json> lines = log_lines(folder / "log");
  const std::vector<json> ooms = of_type(lines, "oom");
  REQUIRE(ooms.size() == 2);
  CHECK(ooms[0].at("reason") == "limit");
  CHECK(ooms[0].at("dev") == 1);
  CHECK(ooms[0].at("req") == 5120);
  CHECK(ooms[0].at("used") == 6144);
  CHECK(ooms[0].at("limit") == 10240);
  CHECK(ooms[0].at("device_free") == 2048);
  CHECK(ooms[0].at("largest_free") == 2048);
  CHECK(ooms[1].at("reason") == "device");
  CHECK(lines.front().at("devices").at(1).at("limit") == 10240);
  CHECK(lines.front().at("devices").at(1).at("uuid") == "GPU-11111111-1111-1111-1111-111111111111");
}

TEST_CASE("without a limit a denial tells the size of the device") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(std::make_unique<TestLimits>(), folder / "log");
  program.create();
  program.take(driver.total + 1);
  const std::vector<json> ooms = of_type(log_lines(folder / "log"), "oom");
  REQUIRE(ooms.size() == 1);
  CHECK(ooms[0].at("limit") == driver.total);
}
