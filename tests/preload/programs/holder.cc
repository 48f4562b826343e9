// holder COUNT BYTES TOO_MANY: allocates COUNT blocks of BYTES on the first device, requests TOO_MANY bytes more, which
// must be refused, prints "ready" and runs until its stdin ends.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  if (argc != 4 || cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  for (int i = std::atoi(argv[1]); i > 0; --i) {
    if (cuMemAlloc_v2(&block, std::strtoull(argv[2], nullptr, 10)) != CUDA_SUCCESS) {
      return 1;
    }
  }
  if (cuMemAlloc_v2(&block, std::strtoull(argv[3], nullptr, 10)) != CUDA_ERROR_OUT_OF_MEMORY) {
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
