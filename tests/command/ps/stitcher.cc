// stitcher: fills the first device with blocks, frees two that are apart and requests one block of both sizes, which
// only granules can serve. Prints "ready", frees that block at the next line of its stdin, prints "freed" and runs
// until its stdin ends.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t kBytes = 4 << 20;

void say(const char *word) {
  std::puts(word);
  std::fflush(stdout);
}

bool wait_for_line() {
  for (int read = std::getchar(); read != EOF; read = std::getchar()) {
    if (read == '\n') {
      return true;
    }
  }
  return false;
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  std::vector<CUdeviceptr> blocks;
  for (CUdeviceptr block = 0; cuMemAlloc_v2(&block, kBytes) == CUDA_SUCCESS;) {
    blocks.push_back(block);
  }
  if (blocks.size() < 5 || cuMemFree_v2(blocks[1]) != CUDA_SUCCESS || cuMemFree_v2(blocks[3]) != CUDA_SUCCESS) {
    return 1;
  }
  CUdeviceptr large = 0;
  cuMemAlloc_v2(&large, 2 * kBytes);  // refused by a pool of slabs
  say("ready");
  if (wait_for_line()) {
    cuMemFree_v2(large);
    say("freed");
  }
  while (wait_for_line()) {
  }
  return 0;
}
