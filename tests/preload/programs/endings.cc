// endings HOW: allocates, frees and is refused for a while, then ends as HOW says, with live blocks. HOW: return | exit
// | quick | abort | kill (during calls of four threads) | thread (exit from another thread) | last (the main thread
// ends before another one, with a block of 64 MiB) | file_size (return, under
// an RLIMIT_FSIZE of 8 KiB from the first driver call on) | setrlimit | prlimit (each lowers that limit for some calls)
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fill.h"

namespace {

const preload::Calls kCalls = {&cuInit, &cuDeviceGet, &cuCtxCreate_v2, &cuMemAlloc_v2};

// Frees two of three blocks; one round is refused.
void work(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    CUdeviceptr blocks[3] = {};
    for (CUdeviceptr &block : blocks) {
      cuMemAlloc_v2(&block, size_t{1} << (12 + round % 8));
    }
    cuMemFree_v2(blocks[2]);
    cuMemFree_v2(blocks[0]);
  }
  CUdeviceptr never = 0;
  cuMemAlloc_v2(&never, size_t{4} << 30);
}

void limit_file_size(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

// As limit_file_size(1024), below the log's size, with calls at once before and after it, and a limit that is lifted.
void lower_file_size_limit(bool by_prlimit) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low{1024, before.rlim_max};
  work(1);
  by_prlimit ? prlimit(0, RLIMIT_FSIZE, &low, nullptr) : setrlimit(RLIMIT_FSIZE, &low);
  work(1);
  by_prlimit ? prlimit(0, RLIMIT_FSIZE, &before, nullptr) : setrlimit(RLIMIT_FSIZE, &before);
  work(1);
}

void die_amid_calls() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      cuCtxSetCurrent(context);
      for (;;) {
        work(1);
        ++calls;
      }
    });
  }
  while (calls < 100) {
    std::this_thread::yield();
  }
  kill(getpid(), SIGKILL);
}

}  // namespace

int main(int argc, char **argv) {
  const std::string how = argc == 2 ? argv[1] : "";
  size_t total = 0;
  if (how == "file_size") {
    limit_file_size(8192);
    cuDeviceTotalMem_v2(&total, 0);
    limit_file_size(RLIM_INFINITY);  // the simulated device's memory is a file, too
  }
  if (!preload::start(kCalls)) {
    return 1;
  }
  if (how == "file_size") {
    limit_file_size(8192);
  }
  work(40);
  if (how == "setrlimit" || how == "prlimit") {
    lower_file_size_limit(how == "prlimit");
    return 0;
  }
  if (how == "exit") {
    exit(0);
  }
  if (how == "quick") {
    _exit(0);
  }
  if (how == "abort") {
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  if (how == "kill") {
    die_amid_calls();
  }
  if (how == "thread") {
    std::thread([] { exit(0); }).join();
  }
  if (how == "last") {
    CUdeviceptr large = 0;
    cuMemAlloc_v2(&large, size_t{64} << 20);
    std::thread([main_thread = pthread_self()] {
      pthread_join(main_thread, nullptr);
      work(1);
    }).detach();
    pthread_exit(nullptr);
  }
  return how == "return" || how == "file_size" ? 0 : 1;
}
