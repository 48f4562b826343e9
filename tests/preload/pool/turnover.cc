// turnover THREADS TURNS [working] [beside]: threads that hold 12 MiB between them, in blocks of 1 MiB, and free and
// allocate one of them in turn. `working` queues work on each block before its free; `beside`: another context exists,
// in which nothing is ever done. Prints the most that the device held for the process in allocations, and how often a
// context was synchronised.
#include <simcuda/simcuda.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "verdict.h"

namespace {

using namespace preload::pool;

constexpr size_t kBlockBytes = 1 << 20;
constexpr int kBlocks = 12;

class Turnover {
 public:
  Turnover(unsigned long long turns, bool working) : turns_(turns), working_(working) {}

  bool start(bool beside) {
    CUcontext other = nullptr;
    return verdict_.succeeded("cuInit", cuInit(0)) &&
           (!beside || verdict_.succeeded("cuCtxCreate", cuCtxCreate_v2(&other, 0, 0))) &&
           verdict_.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context_, 0));
  }
  void run(int blocks) {
    CUstream stream = nullptr;
    if (!verdict_.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(context_)) ||
        !verdict_.succeeded("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) {
      return;
    }
    std::vector<CUdeviceptr> held(static_cast<std::size_t>(blocks));
    for (CUdeviceptr &block : held) take(block);
    for (unsigned long long turn = 0; turn < turns_ && !verdict_.failed(); ++turn) {
      CUdeviceptr &block = held[turn % held.size()];
      if (working_) verdict_.succeeded("cuMemsetD8Async", cuMemsetD8Async(block, 1, 512, stream));
      verdict_.succeeded("cuMemFree", cuMemFree_v2(block));
      take(block);
    }
  }
  int end() {
    printf("bytes %llu\nsynchronises %llu\n", most_.load(), simcuda_calls("cuCtxSynchronize"));
    return verdict_.status();
  }

 private:
  void take(CUdeviceptr &block) {
    verdict_.succeeded("cuMemAlloc", cuMemAlloc_v2(&block, kBlockBytes));
    simcuda_books books{};
    simcuda_device_books(0, &books);
    unsigned long long most = most_;
    const unsigned long long held = books.allocation_bytes + books.physical_bytes;
    while (most < held && !most_.compare_exchange_weak(most, held)) {
    }
  }

  const unsigned long long turns_;
  const bool working_;
  Verdict verdict_;
  CUcontext context_ = nullptr;
  std::atomic<unsigned long long> most_{0};
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return kOtherFailure;
  const auto has = [&](std::string_view word) {
    return std::any_of(argv + 3, argv + argc, [&](auto arg) { return arg == word; });
  };
  const int threads = std::clamp(atoi(argv[1]), 1, kBlocks);
  Turnover turnover(strtoull(argv[2], nullptr, 10), has("working"));
  if (!turnover.start(has("beside"))) return turnover.end();
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&] { turnover.run(kBlocks / threads); });
  }
  for (std::thread &thread : all) thread.join();
  return turnover.end();
}
