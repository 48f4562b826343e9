// ring PROCESSES ROUNDS SEED: processes that each allocate and free blocks of 1 to 64 MiB at random, of which at most
// 896 MiB are live at a time in all of them. What each block holds is looked at before it is freed. Prints how many
// allocations there were and how many were refused.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "tests/shapes/random.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMost = 896 * kMiB;

struct Shared {
  std::atomic<size_t> live;
  std::atomic<unsigned> ready, allocations, refused, wrong;
};
Shared *shared;
size_t least, most;  // MiB

struct Block {
  CUdeviceptr address;
  size_t bytes;
  unsigned mark;
};

// False: all of them together would have more than kMost.
bool claim(size_t bytes) {
  size_t live = shared->live.load();
  while (live + bytes <= kMost) {
    if (shared->live.compare_exchange_weak(live, live + bytes)) return true;
  }
  return false;
}

bool release(std::vector<Block> &blocks, size_t which) {
  const Block block = blocks[which];
  blocks[which] = blocks.back();
  blocks.pop_back();
  unsigned first = 0, last = 0;
  const bool right = cuMemcpyDtoH_v2(&first, block.address, 4) == CUDA_SUCCESS &&
                     cuMemcpyDtoH_v2(&last, block.address + block.bytes - 4, 4) == CUDA_SUCCESS &&
                     first == block.mark && last == block.mark && cuMemFree_v2(block.address) == CUDA_SUCCESS;
  shared->live.fetch_sub(block.bytes);
  return right;
}

int work(unsigned number, unsigned processes, unsigned rounds, unsigned seed) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return 1;
  shared->ready.fetch_add(1);
  while (shared->ready.load() < processes) sched_yield();
  ration::shapes::Random random(seed * 100 + number);
  std::vector<Block> blocks;
  for (unsigned i = 0; i < rounds; ++i) {
    const size_t bytes = random.between(least, most) * kMiB;
    while (!blocks.empty() && random.between(0, 2) == 0) {
      if (!release(blocks, random.between(0, blocks.size() - 1))) shared->wrong.fetch_add(1);
    }
    if (!claim(bytes)) continue;
    Block block{0, bytes, i * processes + number};
    shared->allocations.fetch_add(1);
    if (cuMemAlloc_v2(&block.address, bytes) != CUDA_SUCCESS) {
      shared->refused.fetch_add(1);
      shared->live.fetch_sub(bytes);
      continue;
    }
    if (cuMemsetD32_v2(block.address, block.mark, 1) != CUDA_SUCCESS ||
        cuMemsetD32_v2(block.address + bytes - 4, block.mark, 1) != CUDA_SUCCESS) {
      shared->wrong.fetch_add(1);
    }
    blocks.push_back(block);
  }
  while (!blocks.empty()) {
    if (!release(blocks, 0)) shared->wrong.fetch_add(1);
  }
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 6) return 2;
  const auto number = [&](int at) { return static_cast<unsigned>(strtoul(argv[at], nullptr, 10)); };
  least = number(4);
  most = number(5);
  void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  shared = static_cast<Shared *>(memory);
  for (unsigned i = 0; i < number(1); ++i) {
    if (fork() == 0) _exit(work(i, number(1), number(2), number(3)));
  }
  bool ended_well = true;
  for (int status = 0; wait(&status) > 0;) ended_well &= status == 0;
  printf("allocations=%u refused=%u wrong=%u\n", shared->allocations.load(), shared->refused.load(),
         shared->wrong.load());
  return ended_well && shared->wrong.load() == 0 ? 0 : 1;
}
