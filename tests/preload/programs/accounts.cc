// accounts LIMIT SEED SLACK: eight threads allocate and free random sizes and count their live bytes. At most LIMIT
// bytes may be live at once; after everything is freed, the device has as much free as at the start, minus SLACK bytes.
#include <stdlib.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "checks.h"
#include "fill.h"

namespace {

constexpr int kThreads = 8;
constexpr int kOperations = 1500;

std::atomic<uint64_t> live{0};
std::atomic<uint64_t> most{0};
std::atomic<int> refused{0};
std::atomic<int> wrong{0};

struct Block {
  CUdeviceptr address;
  uint64_t bytes;
};

void give_back(Block block) {
  live -= block.bytes;  // before the free: another thread may use the room at once
  wrong += cuMemFree_v2(block.address) == CUDA_SUCCESS ? 0 : 1;
}

void take(std::vector<Block> &blocks, uint64_t bytes) {
  CUdeviceptr address = preload::kBefore;
  const CUresult code = cuMemAlloc_v2(&address, bytes);
  if (code == CUDA_SUCCESS) {
    const uint64_t now = live += bytes;
    uint64_t before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    blocks.push_back({address, bytes});
  } else {
    (code == CUDA_ERROR_OUT_OF_MEMORY && address == 0 ? refused : wrong)++;
  }
}

void work(CUcontext context, unsigned seed) {
  cuCtxSetCurrent(context);
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < kOperations; ++i) {
    if (blocks.empty() || random() % 100 < 55) {
      take(blocks, 1 + random() % (32u << 20));
    } else {
      const size_t which = random() % blocks.size();
      give_back(blocks[which]);
      blocks[which] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block &block : blocks) {
    give_back(block);
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    return 2;
  }
  const uint64_t limit = strtoull(argv[1], nullptr, 10);
  const auto seed = static_cast<unsigned>(strtoul(argv[2], nullptr, 10));
  const uint64_t slack = strtoull(argv[3], nullptr, 10);
  CUcontext context = nullptr;
  preload::Checks checks;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) {
    return 1;
  }
  size_t free_bytes = 0;
  size_t total = 0;
  cuMemGetInfo_v2(&free_bytes, &total);
  checks.expect("the ration is free at the start", free_bytes == limit && total == limit);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back(work, context, seed * kThreads + i);
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  cuMemGetInfo_v2(&free_bytes, &total);
  dprintf(1, "most %llu of %llu bytes, %d refused\n", static_cast<unsigned long long>(most.load()),
          static_cast<unsigned long long>(limit), refused.load());
  checks.expect("never more than the limit is live", most <= limit);
  checks.expect("the limit was reached", refused > 0);
  checks.expect("no other answer", wrong == 0);
  checks.expect("the account is empty", live == 0);
  checks.expect("the ration is free at the end", free_bytes <= limit && free_bytes + slack >= limit);
  return checks.done();
}
