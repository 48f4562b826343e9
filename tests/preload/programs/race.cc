// race HOW: 64 threads make the process's first CUDA calls at once and allocate blocks until each is refused. HOW:
// linked | looked_up (each thread opens the driver and looks its functions up itself).
#include <dlfcn.h>

#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "fill.h"

namespace {

constexpr int kThreads = 64;

struct Functions {
  decltype(&::cuInit) init = &::cuInit;
  decltype(&::cuDevicePrimaryCtxRetain) retain = &::cuDevicePrimaryCtxRetain;
  decltype(&::cuCtxSetCurrent) set_current = &::cuCtxSetCurrent;
  decltype(&::cuMemAlloc_v2) allocate = &::cuMemAlloc_v2;
};

Functions look_up() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  return {reinterpret_cast<decltype(&::cuInit)>(dlsym(driver, "cuInit")),
          reinterpret_cast<decltype(&::cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain")),
          reinterpret_cast<decltype(&::cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent")),
          reinterpret_cast<decltype(&::cuMemAlloc_v2)>(dlsym(driver, "cuMemAlloc_v2"))};
}

}  // namespace

int main(int argc, char **argv) {
  const bool linked = argc != 2 || std::string(argv[1]) == "linked";
  std::barrier together(kThreads);
  std::atomic<int> blocks{0};
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      together.arrive_and_wait();
      const Functions functions = linked ? Functions{} : look_up();
      CUcontext context = nullptr;
      if (functions.init(0) != CUDA_SUCCESS || functions.retain(&context, 0) != CUDA_SUCCESS ||
          functions.set_current(context) != CUDA_SUCCESS) {
        ++wrong;
        return;
      }
      const preload::Taken taken = preload::take_all(functions.allocate);
      blocks += taken.blocks;
      (taken.code == CUDA_ERROR_OUT_OF_MEMORY && taken.null ? refused : wrong)++;
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  if (wrong != 0 || refused != kThreads) {
    dprintf(2, "%d threads were refused, %d went wrong\n", refused.load(), wrong.load());
    return 1;
  }
  preload::print({blocks, CUDA_ERROR_OUT_OF_MEMORY, true});
  return 0;
}
