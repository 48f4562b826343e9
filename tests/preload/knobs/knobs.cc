// knobs [MANAGED]: allocates 1 MiB, 40 MiB, then MiB after MiB until it is refused. Prints one line of `name value`
// pairs: the memory it was shown, what the simulated device held after the first two allocations, how much it got, the
// driver calls, and the result of allocating MANAGED bytes of managed memory.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#include "simcuda/simcuda.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void must(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "knobs: %d\n", static_cast<int>(code));
  std::exit(1);
}

unsigned long long held() {
  simcuda_books books{};
  if (simcuda_device_books(0, &books) != 0) std::exit(2);
  return books.allocation_bytes + books.pool_bytes + books.physical_bytes;
}

CUresult take(std::size_t bytes, unsigned long long &got) {
  CUdeviceptr block = 0;
  const CUresult code = cuMemAlloc(&block, bytes);
  got += code == CUDA_SUCCESS ? bytes : 0;
  return code;
}

}  // namespace

int main(int argc, char **argv) {
  CUcontext context = nullptr;
  must(cuInit(0));
  std::size_t device_total = 0;
  must(cuDeviceTotalMem(&device_total, 0));
  must(cuCtxCreate(&context, nullptr, 0, 0));
  std::size_t free = 0, total = 0;
  must(cuMemGetInfo(&free, &total));
  unsigned long long got = 0;
  CUresult code = take(kMiB, got);
  const unsigned long long first = held();
  if (code == CUDA_SUCCESS) code = take(40 * kMiB, got);
  const unsigned long long then = held();
  const unsigned long long direct = simcuda_calls("cuMemAlloc_v2");
  const unsigned long long pooled = simcuda_calls("cuMemAllocFromPoolAsync");
  CUresult managed = CUDA_ERROR_NOT_INITIALIZED;
  if (argc == 2) {
    CUdeviceptr block = 0;
    managed = cuMemAllocManaged(&block, std::strtoull(argv[1], nullptr, 10), CU_MEM_ATTACH_GLOBAL);
    if (managed == CUDA_SUCCESS) must(cuMemFree(block));
  }
  while (code == CUDA_SUCCESS) code = take(kMiB, got);
  std::printf(
      "total %zu device_total %zu free %zu first %llu then %llu got %llu held %llu code %d direct %llu pooled %llu "
      "managed %d\n",
      total, device_total, free, first, then, got, held(), static_cast<int>(code), direct, pooled,
      static_cast<int>(managed));
  return 0;
}
