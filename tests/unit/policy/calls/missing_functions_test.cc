// Drivers that lack functions: what needs one is turned off, never the limit.
#include <cstdio>
#include <functional>

#include "catch.h"
#include "unit/events/child_process.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

struct Lack {
  const char *function;
  std::function<void()> apply;
};

// Every function that Ration uses and that a driver may lack.
std::vector<Lack> every_lack() {
  return {
#define RATION_USED(symbol, parameters) {#symbol, [] { driver::real.symbol.set(nullptr); }},
#include "driver/used_functions.inc"
#undef RATION_USED
      {"cuMemGetInfo_v2", [] { driver::real.cuMemGetInfo_v2.set(nullptr); }},
      {"cuDeviceTotalMem_v2", [] { driver::real.cuDeviceTotalMem_v2.set(nullptr); }},
      {"cuCtxSynchronize", [] { driver::real.cuCtxSynchronize.set(nullptr); }},
      {"cuDevicePrimaryCtxRetain", [] { driver::real.cuDevicePrimaryCtxRetain.set(nullptr); }},
      {"cuDevicePrimaryCtxRelease_v2", [] { driver::real.cuDevicePrimaryCtxRelease_v2.set(nullptr); }},
  };
}

// Takes, frees in both ways, queries, destroys. True: never more than the limit was held.
bool limit_holds(FakeDriver &driver, Program &program) {
  const CUcontext context = program.create();
  bool held = true;
  CUdeviceptr first = kUntouched;
  for (int i = 0; i < 5; ++i) {
    const CUdeviceptr address = program.take(3072);
    first = address != kUntouched ? address : first;
    held = held && driver.used(0) <= 10240;
  }
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  held = held && driver.live_blocks() == 3;
  program.free(first);
  program.free_async(program.take(3072));
  program.take(3072);
  held = held && driver.used(0) <= 10240;
  CHECK(program.destroy(context) == CUDA_SUCCESS);
  return held;
}

// Two contexts that work, take and free at once. True: the limit held, and no block had a new owner too early.
bool pool_is_right(FakeDriver &driver) {
  PooledProgram program(driver, limit_of(2 * kSlab));
  const CUcontext contexts[] = {program.create(), program.create()};
  std::vector<CUdeviceptr> blocks;
  bool held = true;
  int served = 0;
  int queries = 0;
  driver.on_query = [&] {
    if (++queries % 16 == 0) {  // the device goes on while the host waits for it
      driver.timeline.finish(contexts[0]);
      driver.timeline.finish(contexts[1]);
    }
  };
  for (unsigned step = 0; step < 600; ++step) {
    FakeDriver::current = contexts[step / 7 % 2];
    driver.timeline.submit(FakeDriver::current);
    if (const CUdeviceptr block = program.take(1000 * (1 + step * 37 % 900)); block != kUntouched) {
      blocks.push_back(block);
      ++served;
    }
    held = held && driver.used(0) <= 2 * kSlab;
    if (step % 3 != 0 && !blocks.empty()) {
      std::swap(blocks[step % blocks.size()], blocks.back());
      CHECK(program.free(blocks.back()) == CUDA_SUCCESS);
      blocks.pop_back();
    }
    if (step % 40 == 0) {
      driver.timeline.finish(contexts[step / 40 % 2]);
    }
  }
  CHECK(served > 300);
  CHECK(program.early() == 0);
  CHECK(driver.timeline.dead_uses() == 0);
  for (const CUdeviceptr block : blocks) {
    CHECK(program.free(block) == CUDA_SUCCESS);
  }
  for (const CUcontext context : contexts) {
    CHECK(program.destroy(context) == CUDA_SUCCESS);
  }
  CHECK(program.charged() == 0);
  return held && served > 300 && program.early() == 0;
}

}  // namespace

TEST_CASE("a limit holds whichever single function the driver lacks") {
  int covered = 0;
  const std::vector<Lack> lacks = every_lack();
  for (const Lack &lack : lacks) {
    INFO(lack.function);
    FakeDriver driver;
    lack.apply();
    Program program(limit_of(10240));
    const bool holds = limit_holds(driver, program);
    CHECK(holds);
    covered += holds ? 1 : 0;
  }
  std::printf("covered: %d of %zu\n", covered, lacks.size());
  CHECK(static_cast<std::size_t>(covered) == lacks.size());
}

TEST_CASE("a limit holds on a driver that has next to nothing") {
  FakeDriver driver;
  for (const Lack &lack : every_lack()) {
    lack.apply();
  }
  Program program(limit_of(10240));
  CHECK(limit_holds(driver, program));
}

TEST_CASE("pools hold the limit and share no block too early, whichever single function the driver lacks") {
  int covered = 0;
  const std::vector<Lack> lacks = every_lack();
  for (const Lack &lack : lacks) {
    INFO(lack.function);
    FakeDriver driver;
    lack.apply();
    const bool right = pool_is_right(driver);
    CHECK(right);
    covered += right ? 1 : 0;
  }
  std::printf("covered: %d of %zu\n", covered, lacks.size());
  CHECK(static_cast<std::size_t>(covered) == lacks.size());
}

TEST_CASE("where the driver cannot say what it is through with, every block is its own") {
  using Slots = std::vector<std::function<void()>>;
  const Slots ways[] = {
      {[] { driver::real.cuCtxGetCurrent.set(nullptr); }},
      {[] { driver::real.cuCtxRecordEvent.set(nullptr); }, [] { driver::real.cuCtxSynchronize.set(nullptr); }},
      {[] { driver::real.cuEventQuery.set(nullptr); }, [] { driver::real.cuCtxSynchronize.set(nullptr); }}};
  for (const Slots &lacks : ways) {
    FakeDriver driver;
    for (const auto &lack : lacks) {
      lack();
    }
    PooledProgram program(driver, limit_of(kSlab));
    program.create();
    const CUdeviceptr address = program.take(1024);
    CHECK(driver.asked() == std::vector<std::uint64_t>{1024});
    CHECK(program.free(address) == CUDA_SUCCESS);
    CHECK(driver.live_blocks() == 0);
    CHECK(program.charged() == 0);
  }
}

TEST_CASE("a driver that serves but does not say what devices it has gets past no limit") {
  FakeDriver driver;
  driver.fails["cuDeviceGetCount"] = CUDA_ERROR_UNKNOWN;
  Program limited(limit_of(1000));
  limited.create();
  CHECK(limited.take(1) == kUntouched);
  CHECK(limited.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(driver.live_blocks() == 0);
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_NOT_INITIALIZED;
  limited.take(1);
  CHECK(limited.last == CUDA_ERROR_NOT_INITIALIZED);
}

TEST_CASE("where no limit was asked for, a driver that does not say what devices it has serves as ever") {
  FakeDriver driver;
  driver.fails["cuDeviceGetCount"] = CUDA_ERROR_UNKNOWN;
  Program program;
  program.create();
  CHECK(program.take(1) != kUntouched);
}

TEST_CASE("a share of a device is learnt from another query where the first is missing") {
  FakeDriver driver;
  driver::real.cuDeviceTotalMem_v2.set(nullptr);
  auto limits = std::make_unique<TestLimits>();
  limits->share = 0.25;
  Program program(std::move(limits));
  program.create();
  CHECK(program.take(driver.total / 4 + 1) == kUntouched);
  CHECK(program.take(driver.total / 4) != kUntouched);
  CHECK(program.take(1) == kUntouched);
  CHECK(program.memory().total_bytes == driver.total / 4);
}

TEST_CASE("a share of a device whose size nobody tells is refused, with one line that says why") {
  FakeDriver driver;
  driver::real.cuDeviceTotalMem_v2.set(nullptr);
  driver::real.cuMemGetInfo_v2.set(nullptr);
  auto limits = std::make_unique<TestLimits>();
  limits->share = 0.25;
  Program program(std::move(limits));
  const std::string said = stderr_of([&] {
    program.create();
    CHECK(program.take(1) == kUntouched);
  });
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(said ==
        "ration: the limit on device 0 is a percentage of its memory, and the driver does not report its size: every "
        "allocation is refused; ask for a limit in bytes\n"
        "ration: the limit on device 1 is a percentage of its memory, and the driver does not report its size: every "
        "allocation is refused; ask for a limit in bytes\n");
}

TEST_CASE("lines about the devices are said once") {
  FakeDriver driver;
  auto limits = limit_of(1000);
  limits->lines = {"device \"7\" is not visible to this process"};
  Program program(std::move(limits));
  const std::string said = stderr_of([&] {
    program.create();
    program.take(1);
    program.take(1);
  });
  CHECK(said == "ration: device \"7\" is not visible to this process\n");
  REQUIRE(program.limits->met.size() == 2);
  CHECK(program.limits->met[1].ordinal == 1);
  CHECK(program.limits->met[1].name == "fake 1");
  CHECK(program.limits->met[1].total == driver.total);
}

TEST_CASE("devices are asked about again until the driver can answer, and logged then") {
  const ScratchFolder folder;
  FakeDriver driver;
  driver.fails["cuDeviceGetCount"] = CUDA_ERROR_NOT_INITIALIZED;
  Program program(limit_of(1000), folder / "log");
  program.parts.describe();
  CHECK(text_of(folder / "log").empty());
  driver.fails.clear();
  program.create();
  program.take(2000);
  CHECK(program.last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(log_lines(folder / "log").front().at("devices").size() == 2);
}
