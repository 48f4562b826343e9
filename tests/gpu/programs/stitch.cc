// stitch: how long a cuMemAlloc of 1 GiB takes that no hole can hold, and that of the same size again after its free,
// as JSON; beside them what the driver's own calls of it take: 512 mappings of 2 MiB, and access to all at once.
#include <algorithm>
#include <chrono>

#include "device.h"

namespace {

constexpr std::size_t kGranule = 2 * gpu::kMiB, kBytes = 1024 * gpu::kMiB, kHandles = kBytes / kGranule;
constexpr std::size_t kFiller = 3 * gpu::kMiB;  // every second one leaves 2 of 3 granules: enough
constexpr int kRounds = 5;

template <class Work>
double time_of(Work &&work) {
  const auto before = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double time_calls() {
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  std::vector<CUmemGenericAllocationHandle> handles(kHandles);
  for (CUmemGenericAllocationHandle &handle : handles) MUST(cuMemCreate(&handle, kGranule, &kind, 0));
  CUdeviceptr range = 0;
  MUST(cuMemAddressReserve(&range, kBytes, 0, 0, 0));
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    times.push_back(time_of([&] {
      for (std::size_t at = 0; at < kHandles; ++at) MUST(cuMemMap(range + at * kGranule, kGranule, 0, handles[at], 0));
      MUST(cuMemSetAccess(range, kBytes, &access, 1));
    }));
    MUST(cuMemUnmap(range, kBytes));
  }
  for (const CUmemGenericAllocationHandle handle : handles) MUST(cuMemRelease(handle));
  MUST(cuMemAddressFree(range, kBytes));
  return median(times);
}

}  // namespace

int main() {
  gpu::use_device();
  const double calls = time_calls();
  std::vector<CUdeviceptr> fillers;
  CUdeviceptr address = 0;
  while (cuMemAlloc(&address, kFiller) == CUDA_SUCCESS) fillers.push_back(address);
  for (std::size_t i = 0; i < fillers.size(); i += 2) MUST(cuMemFree(fillers[i]));
  MUST(cuCtxSynchronize());
  CUdeviceptr block = 0;
  const double stitched = time_of([&] { MUST(cuMemAlloc(&block, kBytes)); });
  MUST(cuMemsetD8(block, 1, kBytes));
  MUST(cuMemFree(block));
  MUST(cuCtxSynchronize());
  const double again = time_of([&] { MUST(cuMemAlloc(&block, kBytes)); });
  std::printf(
      "{\"fillers\": %zu, \"calls_us\": %.1f, \"stitched_us\": %.1f, \"again_us\": %.1f, \"stitched_over_calls\": "
      "%.3f}\n",
      fillers.size(), calls, stitched, again, stitched / calls);
  return 0;
}
