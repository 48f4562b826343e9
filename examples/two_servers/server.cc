// server NAME: like an inference server: asks how much memory is free, plans a cache of 90 % of that, and takes it at a
// word from its stdin. Holds it until its stdin ends.
#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBlock = 64 * kMiB;

bool started() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
         cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char **argv) {
  const char *const name = argc > 1 ? argv[1] : "server";
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (!started() || cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) {
    std::printf("%s: FAILED: no device\n", name);
    return 1;
  }
  const std::size_t planned = free_bytes / 10 * 9 / kBlock;
  std::printf("%s: %zu of %zu MiB are free: plans a cache of %zu MiB\n", name, free_bytes / kMiB, total_bytes / kMiB,
              planned * kBlock / kMiB);
  std::fflush(stdout);
  std::string word;
  std::getline(std::cin, word);
  for (std::size_t i = 0; i < planned; ++i) {
    CUdeviceptr block = 0;
    if (cuMemAlloc(&block, kBlock) != CUDA_SUCCESS) {
      std::printf("%s: FAILED: out of memory after %zu MiB\n", name, i * kBlock / kMiB);
      std::fflush(stdout);
      std::getline(std::cin, word);
      return 1;
    }
  }
  std::printf("%s: serves\n", name);
  std::fflush(stdout);
  std::getline(std::cin, word);
  return 0;
}
