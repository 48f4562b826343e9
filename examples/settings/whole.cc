// Allocates all of its device that it can get, 64 MiB at a time, and prints the amount. Does not use Ration.
#include <cuda.h>

#include <cstdio>
#include <vector>

int main() {
  constexpr size_t kMiB = size_t{1} << 20;
  CUdevice device = 0;
  CUcontext context = nullptr;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) {
    std::puts("whole: no CUDA here");
    return 1;
  }
  std::vector<CUdeviceptr> blocks;
  for (CUdeviceptr block = 0; cuMemAlloc(&block, 64 * kMiB) == CUDA_SUCCESS;) {
    blocks.push_back(block);
  }
  std::printf("whole: sees %zu MiB, gets %zu MiB\n", total_bytes / kMiB, blocks.size() * 64);
  for (const CUdeviceptr block : blocks) {
    cuMemFree(block);
  }
}
