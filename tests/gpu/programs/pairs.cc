// pairs SECONDS BYTES [busy]: what cuMemAlloc and cuMemFree of one block cost together, as JSON. With `busy` a second
// thread keeps a stream at work with fills of another block.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "device.h"

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> finished{false};

// At most 16 fills are queued, so that a free which waits for the stream waits for those.
void keep_busy(CUcontext context) {
  MUST(cuCtxSetCurrent(context));
  CUstream stream = nullptr;
  CUevent passed = nullptr;
  CUdeviceptr block = 0;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&passed, CU_EVENT_DISABLE_TIMING));
  MUST(cuMemAlloc(&block, 64 * gpu::kMiB));
  while (!finished) {
    for (int i = 0; i < 16; ++i) MUST(cuMemsetD8Async(block, 1, 64 * gpu::kMiB, stream));
    MUST(cuEventRecord(passed, stream));
    MUST(cuEventSynchronize(passed));
  }
  MUST(cuMemFree(block));
}

double nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

}  // namespace

int main(int count, char **arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 0.3;
  const std::size_t bytes = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : gpu::kMiB;
  const bool busy = count > 3 && std::strcmp(arguments[3], "busy") == 0;
  gpu::use_device();
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  CUdeviceptr address = 0;
  for (int i = 0; i < 64; ++i) {  // the pool, or the driver, has its memory
    MUST(cuMemAlloc(&address, bytes));
    MUST(cuMemFree(address));
  }
  std::thread beside;
  if (busy) beside = std::thread(keep_busy, context);
  std::vector<double> pairs;
  const auto begun = Clock::now();
  while (nanoseconds(Clock::now() - begun) < seconds * 1e9 && pairs.size() < 2'000'000) {
    const auto before = Clock::now();
    MUST(cuMemAlloc(&address, bytes));
    MUST(cuMemFree(address));
    pairs.push_back(nanoseconds(Clock::now() - before));
  }
  finished = true;
  if (beside.joinable()) beside.join();
  std::sort(pairs.begin(), pairs.end());
  std::printf("{\"pairs\": %zu, \"median_ns\": %.1f, \"p99_ns\": %.1f, \"most_ns\": %.1f}\n", pairs.size(),
              pairs[pairs.size() / 2], pairs[pairs.size() * 99 / 100], pairs.back());
  return 0;
}
