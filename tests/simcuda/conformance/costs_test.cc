// What calls take by default. Source: H100 80GB HBM3, driver 580.159.04, 2026-11-26 (tests/gpu/results).
#include <functional>

#include "tests/simcuda/conformance/pool.h"
#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

// In tenths of microseconds, as the simulator counts them.
unsigned long long tenths(const std::function<CUresult()> &call) {
  const unsigned long long before = simulator().costs_ns();
  REQUIRE(call() == CUDA_SUCCESS);
  return (simulator().costs_ns() - before + 50) / 100;
}

TEST_CASE("an allocation and its free take more the larger they are") {
  if (!simulator()) return;
  const CurrentContext context;
  CUdeviceptr block = 0;
  const auto pair = [&](std::size_t bytes) {
    const unsigned long long taking = tenths([&] { return cuMemAlloc(&block, bytes); });
    return std::pair(taking, tenths([&] { return cuMemFree(block); }));
  };
  CHECK(pair(512) == std::pair(12ull, 13ull));
  CHECK(pair(kMiB) == std::pair(300ull, 269ull));
  CHECK(pair(32 * kMiB) == std::pair(355ull, 417ull));
  CHECK(pair(1024 * kMiB) == std::pair(1405ull, 5159ull));
  CHECK(tenths([] { return cuMemFree(0); }) == 2);
}

TEST_CASE("each mapping costs, and only what changes it") {
  if (!simulator()) return;
  const CurrentContext context;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp memory = on_device();
  CHECK(tenths([&] { return cuMemAddressReserve(&range, 4 * kGranule, 0, 0, 0); }) == 8);
  CHECK(tenths([&] { return cuMemCreate(&handle, kGranule, &memory, 0); }) == 108);
  for (CUdeviceptr at = range; at < range + 4 * kGranule; at += kGranule) {
    CHECK(tenths([&] { return cuMemMap(at, kGranule, 0, handle, 0); }) == 8);
  }
  const auto let = [&](std::size_t bytes) {
    return tenths([&] { return allow(range, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE); });
  };
  CHECK(let(3 * kGranule) == 3 * 249 + 6);
  CHECK(let(3 * kGranule) == 6);
  CHECK(tenths([&] { return cuMemUnmap(range, 4 * kGranule); }) == 3 * 171 + 4);
  CHECK(tenths([&] { return cuMemRelease(handle); }) == 121);
  CHECK(tenths([&] { return cuMemAddressFree(range, 4 * kGranule); }) == 7);
}

TEST_CASE("a pool's allocation costs where the pool grows, and a wait where it shrinks") {
  if (!simulator()) return;
  const CurrentContext context;
  Pool pool;
  const CUstream stream = new_stream();
  for (const bool kept : {false, true}) {
    if (kept) pool.keep(UINT64_MAX);
    CUdeviceptr block = 0;
    const auto allocate = [&] {
      return tenths([&] { return cuMemAllocFromPoolAsync(&block, kMiB, pool.get(), stream); });
    };
    CHECK(allocate() == 700 + 7);
    CHECK(tenths([&] { return cuMemFreeAsync(block, stream); }) == 8);
    CHECK(allocate() == 7);
    CHECK(tenths([&] { return cuMemFreeAsync(block, stream); }) == 8);
    CHECK(tenths([&] { return cuStreamSynchronize(stream); }) == (kept ? 5 : 800 + 5));
  }
}

TEST_CASE("the calls that every hit and fence makes cost what was measured") {
  if (!simulator()) return;
  const CurrentContext context;
  const CUevent event = new_event();
  CUcontext current = nullptr;
  CHECK(tenths([&] { return cuCtxGetCurrent(&current); }) == 0);
  CHECK(tenths([&] { return cuCtxRecordEvent(context.get(), event); }) == 3);
  CHECK(tenths([&] { return cuEventSynchronize(event); }) == 5);
  CHECK(tenths([&] { return cuEventQuery(event); }) == 3);
}

}  // namespace
}  // namespace simcuda::conformance
