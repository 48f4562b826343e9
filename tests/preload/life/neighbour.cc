// neighbour linked|looked_up: does what larger programs do around their CUDA calls. Four threads allocate and free host
// and device memory at once, exceptions are thrown, a library is opened; then the device is filled, emptied and filled
// again. Built without and with each sanitizer; the last line is the sum of the results.
#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/programs/fill.h"

namespace {

struct Found {
  preload::Calls calls;
  decltype(&::cuMemFree_v2) release;
  decltype(&::cuCtxSetCurrent) set_current;
  decltype(&::cuCtxGetCurrent) get_current;
};

#ifdef NEIGHBOUR_LINKED
Found find() {
  return {{&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2}, &cuMemFree_v2, &cuCtxSetCurrent, &cuCtxGetCurrent};
}
#else
Found find() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto by_name = [=](const char *name) { return dlsym(driver, name); };
  return {preload::calls_found_by(by_name), reinterpret_cast<decltype(&::cuMemFree_v2)>(by_name("cuMemFree_v2")),
          reinterpret_cast<decltype(&::cuCtxSetCurrent)>(by_name("cuCtxSetCurrent")),
          reinterpret_cast<decltype(&::cuCtxGetCurrent)>(by_name("cuCtxGetCurrent"))};
}
#endif

constexpr int kThreads = 4;
constexpr int kRounds = 80;
std::atomic<int> wrong{0};

void work(const Found &found, CUcontext context, unsigned seed) {
  found.set_current(context);
  std::vector<std::pair<CUdeviceptr, std::unique_ptr<std::string>>> held;
  for (unsigned i = 0; i < kRounds; ++i) {
    try {
      CUdeviceptr address = 0;
      const size_t bytes = 1 + (seed * 7919 + i * 104729) % (1 << 17);
      wrong += found.calls.allocate(&address, bytes) == CUDA_SUCCESS ? 0 : 1;
      held.emplace_back(address, std::make_unique<std::string>(bytes / 16, 'x'));
      if (held.size() > 20) {
        throw std::runtime_error(*held.front().second);
      }
    } catch (const std::runtime_error &) {
      wrong += found.release(held.front().first) == CUDA_SUCCESS ? 0 : 1;
      held.erase(held.begin());
    }
  }
  for (const auto &[address, text] : held) {
    wrong += found.release(address) == CUDA_SUCCESS ? 0 : 1;
  }
}

int fill_and_empty(const Found &found) {
  std::vector<CUdeviceptr> blocks;
  for (CUdeviceptr address = 0; found.calls.allocate(&address, preload::kBlockBytes) == CUDA_SUCCESS;) {
    blocks.push_back(address);
  }
  for (const CUdeviceptr address : blocks) {
    wrong += found.release(address) == CUDA_SUCCESS ? 0 : 1;
  }
  return static_cast<int>(blocks.size());
}

}  // namespace

int main() {
  const Found found = find();
  CUcontext context = nullptr;
  if (!preload::start(found.calls) || found.get_current(&context) != CUDA_SUCCESS) {
    return 1;
  }
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { work(found, context, i); });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  const int first = fill_and_empty(found);
  const preload::Taken second = preload::take_all(found.calls.allocate);
  dprintf(1, "wrong=%d first=%d second=%d code=%d null=%d\n", wrong.load(), first, second.blocks,
          static_cast<int>(second.code), second.null ? 1 : 0);
  return 0;
}
