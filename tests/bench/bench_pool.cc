// What an allocation and its free cost in mode pool through the whole preloaded library, linked directly to the
// simulated driver, and without it; alone and beside a thousand live blocks, some of which go and come.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "paired.h"

using namespace ration::bench;

namespace {

constexpr int kPairs = 2000;
constexpr std::size_t kBlock = 1 << 20;

double pair_ns() {
  return least_ns(kPairs, [] {
    for (int i = 0; i < kPairs; ++i) {
      CUdeviceptr address = 0;
      cuMemAlloc(&address, kBlock);
      cuMemFree(address);
    }
  });
}

// Every block is freed in its turn and another one of another size takes its place.
double replace_ns(std::vector<CUdeviceptr> &blocks) {
  return least_ns(kPairs, [&] {
    for (std::size_t i = 0; i < kPairs; ++i) {
      CUdeviceptr &block = blocks[i * 7919 % blocks.size()];
      cuMemFree(block);
      cuMemAlloc(&block, kBlock / 2 + i * 104729 % kBlock);
    }
  });
}

int child() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  std::printf("alloc_free %f\n", pair_ns());
  std::vector<CUdeviceptr> blocks(1000);
  for (CUdeviceptr &block : blocks) {
    if (cuMemAlloc(&block, kBlock) != CUDA_SUCCESS) return 1;
  }
  std::printf("alloc_free_among_1000 %f\n", pair_ns());
  std::printf("replace_one_of_1000 %f\n", replace_ns(blocks));
  return 0;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 2 && std::strcmp(arguments[1], "--child") == 0) return child();
  return compare_children("pool", count, arguments, Under::kPool);
}
