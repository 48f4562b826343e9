// ring PROCESSES ROUNDS SEED LEAST MOST [mixed]: processes that each allocate and free blocks of LEAST to MOST MiB at
// random, of which at most 896 MiB are live at a time in all of them. What each block holds is looked at before it is
// freed. Prints how many allocations there were and how many were refused. mixed: by several routes, of the driver's
// pools in steps by which these grow; each process has an equal part of the 896 MiB.
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
constexpr size_t kStep = 32;  // MiB

struct Shared {
  std::atomic<size_t> live;
  std::atomic<unsigned> ready, allocations, refused, wrong;
};
Shared *shared;
size_t least, most;  // MiB
bool mixed;
size_t own, own_most = kMost;
CUstream stream;
CUmemoryPool pool;

enum Route { kAlloc, kManaged, kAsync, kOwnPool, kRoutes };

struct Block {
  CUdeviceptr address;
  size_t bytes;
  unsigned mark;
  Route route;
};

// False: all of them together would have more than kMost.
bool claim(size_t bytes) {
  if (own + bytes > own_most) return false;
  size_t live = shared->live.load();
  while (live + bytes <= kMost) {
    if (shared->live.compare_exchange_weak(live, live + bytes)) {
      own += bytes;
      return true;
    }
  }
  return false;
}

void unclaim(size_t bytes) {
  own -= bytes;
  shared->live.fetch_sub(bytes);
}

CUresult allocate(Block &block) {
  switch (block.route) {
    case kManaged:
      return cuMemAllocManaged(&block.address, block.bytes, CU_MEM_ATTACH_GLOBAL);
    case kAsync:
      return cuMemAllocAsync(&block.address, block.bytes, stream);
    case kOwnPool:
      return cuMemAllocFromPoolAsync(&block.address, block.bytes, pool, stream);
    default:
      return cuMemAlloc_v2(&block.address, block.bytes);
  }
}

CUresult give_back(const Block &block) {
  if (block.route == kAlloc || block.route == kManaged) return cuMemFree_v2(block.address);
  const CUresult code = cuMemFreeAsync(block.address, stream);
  return code == CUDA_SUCCESS ? cuStreamSynchronize(stream) : code;
}

bool prepare() {
  CUcontext context = nullptr;
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return cuInit(0) == CUDA_SUCCESS && cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS &&
         (!mixed || (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                     cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS));
}

bool release(std::vector<Block> &blocks, size_t which) {
  const Block block = blocks[which];
  blocks[which] = blocks.back();
  blocks.pop_back();
  unsigned first = 0, last = 0;
  const bool right = cuMemcpyDtoH_v2(&first, block.address, 4) == CUDA_SUCCESS &&
                     cuMemcpyDtoH_v2(&last, block.address + block.bytes - 4, 4) == CUDA_SUCCESS &&
                     first == block.mark && last == block.mark && give_back(block) == CUDA_SUCCESS;
  unclaim(block.bytes);
  return right;
}

int work(unsigned number, unsigned processes, unsigned rounds, unsigned seed) {
  if (!prepare()) return 1;
  shared->ready.fetch_add(1);
  while (shared->ready.load() < processes) sched_yield();
  ration::shapes::Random random(seed * 100 + number);
  std::vector<Block> blocks;
  for (unsigned i = 0; i < rounds; ++i) {
    const auto route = static_cast<Route>(mixed ? random.between(0, kRoutes - 1) : 0);
    const size_t bytes = (route == kAlloc || route == kManaged ? random.between(least, most) : kStep) * kMiB;
    while (!blocks.empty() && random.between(0, 2) == 0) {
      if (!release(blocks, random.between(0, blocks.size() - 1))) shared->wrong.fetch_add(1);
    }
    if (!claim(bytes)) continue;
    Block block{0, bytes, i * processes + number, route};
    shared->allocations.fetch_add(1);
    if (allocate(block) != CUDA_SUCCESS) {
      shared->refused.fetch_add(1);
      unclaim(bytes);
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
  mixed = argc > 6;
  if (mixed) own_most = kMost / number(1);
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
