// crowded ROUNDS: grows block by block to 1 GiB, alternately beyond that, and back, with synchronous and stream-ordered
// blocks in turns, once a line has come on stdin; prints how many were refused while it held less than 1 GiB. Without
// ROUNDS: takes all that it gets, gives a little back, and again, until its stdin ends.
#include <cuda.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

namespace {

constexpr size_t kBlock = size_t{64} << 20, kWithin = 1024 / 64, kBeyond = 40, kKept = 5;
constexpr int kEnough = 100;

bool stdin_has_ended() {
  pollfd input{0, POLLIN, 0};
  return poll(&input, 1, 0) == 1 && (input.revents & POLLHUP) != 0;
}

void take_all() {
  std::vector<CUdeviceptr> blocks;
  while (!stdin_has_ended()) {
    for (CUdeviceptr block = 0; cuMemAlloc_v2(&block, kBlock) == CUDA_SUCCESS;) blocks.push_back(block);
    for (int i = 0; i < 2 && !blocks.empty(); ++i) {
      cuMemFree_v2(blocks.back());
      blocks.pop_back();
    }
  }
}

int grow(int rounds) {
  int refused = 0;
  std::vector<CUdeviceptr> blocks;
  for (int round = 0; round < rounds; ++round) {
    const bool ordered = round % 2 == 0;
    for (CUdeviceptr block = 0; blocks.size() < kBeyond;) {
      if ((ordered ? cuMemAllocAsync(&block, kBlock, nullptr) : cuMemAlloc_v2(&block, kBlock)) == CUDA_SUCCESS) {
        blocks.push_back(block);
      } else if (blocks.size() >= kWithin) {
        break;
      } else if (++refused == kEnough) {
        return refused;
      }
    }
    for (; blocks.size() > kKept; blocks.pop_back()) cuMemFree_v2(blocks.back());
    cuCtxSynchronize();
  }
  return refused;
}

}  // namespace

int main(int argc, char **argv) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  if (argc == 1) {
    take_all();
    return 0;
  }
  puts("has its guarantee");
  fflush(stdout);
  getchar();
  printf("%d refused\n", grow(atoi(argv[1])));
  return 0;
}
