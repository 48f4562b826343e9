// Pinned memory where it is the device's memory, too.
#include "catch.h"
#include "unit/policy/fake_call.h"
#include "unit/policy/pooled_program.h"

using namespace ration;
using namespace ration::test;

namespace {

bool is_integrated = false;

// A driver that pins memory of its devices.
struct PinningProgram : PooledProgram {
  PinningProgram(FakeDriver &fake, std::uint64_t limit) : PooledProgram(fake, limit_of(limit)) {
    fill(
        driver::real.cuDeviceGetAttribute, +[](int *value, int attribute, CUdevice) {
          return call("cuDeviceGetAttribute", [&] { return answer(value, attribute == 18 && is_integrated ? 1 : 0); });
        });
  }
  CUresult pin(std::uint64_t bytes, CUdeviceptr *address) {
    return parts.host_memory.allocate(
        {"cuMemHostAlloc", bytes, bytes, nullptr},
        [&](policy::Obtained &got) {
          ++tries;
          got.bytes = bytes;
          return driver::real.cuMemAlloc_v2(&got.address, bytes);
        },
        [](CUdeviceptr) { return CUDA_SUCCESS; }, address);
  }

  int tries = 0;
};

}  // namespace

TEST_CASE("what a pool keeps and does not use makes room for pinned memory that is the device's, too") {
  for (const bool integrated : {true, false}) {
    INFO(integrated);
    is_integrated = integrated;
    FakeDriver driver;
    driver.total = 8 * kMiB;
    PinningProgram program(driver, 8 * kMiB);
    program.create();
    program.free(program.take(6 * kMiB));
    const std::uint64_t held = program.charged();
    REQUIRE(held >= 6 * kMiB);
    CUdeviceptr pinned = kUntouched;
    CHECK(program.pin(4 * kMiB, &pinned) == (integrated ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY));
    CHECK((pinned == kUntouched) == !integrated);
    CHECK(program.charged() == (integrated ? 0 : held));
    CHECK(program.tally().host_bytes == (integrated ? 4 * kMiB : 0));
  }
}

TEST_CASE("pinned memory is refused as the driver refuses it where nothing can make room") {
  is_integrated = true;
  FakeDriver driver;
  driver.total = 8 * kMiB;
  PinningProgram program(driver, 8 * kMiB);
  program.create();
  REQUIRE(program.take(6 * kMiB) != kUntouched);
  CUdeviceptr pinned = kUntouched;
  CHECK(program.pin(4 * kMiB, &pinned) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(pinned == kUntouched);
  CHECK(program.tally().devices[0].denied[static_cast<int>(events::Reason::device)] == 0);
  const int tries = program.tries;
  driver.fails["cuMemAlloc_v2"] = CUDA_ERROR_INVALID_VALUE;  // any other error is the driver's answer
  CHECK(program.pin(kMiB, &pinned) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.tries == tries + 1);
}
