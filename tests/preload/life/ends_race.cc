// ends_race LOG ROUNDS: several threads allocate and free in a context until it is destroyed meanwhile. Another context
// lives on, in which two threads free one block at once and exactly one succeeds. After every round held by the log
// equals held by the device.
#include <stdlib.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/life/claims.h"
#include "tests/preload/programs/checks.h"
#include "tests/preload/programs/fill.h"

namespace {

constexpr int kThreads = 4;
constexpr uint64_t kLimit = uint64_t{256} << 20;  // as set by the test
std::atomic<int> wrong{0};

void claim(const char *what, CUresult code, bool holds) {
  if (!holds && ++wrong < 10) {
    dprintf(1, "%s: %d\n", what, static_cast<int>(code));
  }
}

struct Shared {
  std::mutex mutex;
  std::vector<CUdeviceptr> blocks;
  std::atomic<int> had{0};
};

// Both threads meet before the free, so that their frees of one block coincide.
int free_twice(CUcontext context, CUdeviceptr address) {
  std::atomic<int> arrived{0};
  std::atomic<int> freed{0};
  const auto free_once = [&] {
    cuCtxSetCurrent(context);
    ++arrived;
    while (arrived < 2) {
    }
    const CUresult code = cuMemFree_v2(address);
    freed += code == CUDA_SUCCESS ? 1 : 0;
    claim("one of two frees", code, code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_VALUE);
  };
  std::thread other(free_once);
  free_once();
  other.join();
  return freed;
}

bool is_gone(CUresult code) {
  return code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_INVALID_CONTEXT;
}

// Works in the context that is destroyed, until it is.
void work(CUcontext context, unsigned seed, Shared &shared) {
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return;
  }
  for (unsigned i = 0;; ++i) {
    CUdeviceptr address = preload::kBefore;
    const CUresult code = cuMemAlloc_v2(&address, 1 + (seed * 7919 + i * 104729) % (512u << 10));
    ++shared.had;
    if (is_gone(code)) {
      claim("refused, and not set to 0", code, address == 0);
      return;
    }
    CUdeviceptr victim = 0;
    {
      const std::lock_guard lock(shared.mutex);
      if (code == CUDA_SUCCESS) {
        shared.blocks.push_back(address);
      }
      if (shared.blocks.size() > 40 || code != CUDA_SUCCESS) {
        if (shared.blocks.empty()) {
          continue;
        }
        victim = shared.blocks[(seed + i) % shared.blocks.size()];
        std::erase(shared.blocks, victim);
      }
    }
    const CUresult freed = cuMemFree_v2(victim);
    claim(victim != 0 ? "a free" : "a null free", freed,
          freed == CUDA_SUCCESS || is_gone(freed) || (victim != 0 && freed == CUDA_ERROR_INVALID_VALUE));
  }
}

void round_of(CUcontext stays, unsigned number) {
  // While no other thread allocates: otherwise the second free could hit a new block at this address.
  cuCtxSetCurrent(stays);
  CUdeviceptr own = 0;
  CUresult code = cuMemAlloc_v2(&own, 3000);
  claim("beside it", code, code == CUDA_SUCCESS);
  claim("not one success of two frees", CUDA_SUCCESS, free_twice(stays, own) == 1);
  CUcontext goes = nullptr;
  code = cuCtxCreate_v2(&goes, 0, 0);
  claim("a context", code, code == CUDA_SUCCESS);
  cuCtxPopCurrent_v2(nullptr);
  Shared shared;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { work(goes, number * kThreads + i, shared); });
  }
  while (shared.had < 100) {
    std::this_thread::yield();
  }
  code = cuCtxDestroy_v2(goes);
  claim("its end", code, code == CUDA_SUCCESS);
  for (std::thread &thread : threads) {
    thread.join();
  }
}

}  // namespace

int main(int argc, char **argv) {
  CUcontext stays = nullptr;
  if (argc != 3 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&stays, 0, 0) != CUDA_SUCCESS) {
    return 1;
  }
  preload::Checks checks;
  preload::Claims claims(argv[1], {kLimit});
  for (int i = 0; i < atoi(argv[2]); ++i) {
    round_of(stays, static_cast<unsigned>(i));
    const std::string wrongly = claims.hold(0);
    checks.expect(("round " + std::to_string(i) + ": " + wrongly).c_str(), wrongly.empty());
  }
  dprintf(1, "wrong=%d\n", wrong.load());
  checks.expect("no other code, no second success", wrong == 0);
  return checks.done();
}
