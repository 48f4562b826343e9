// callers HOW: allocates on paths that the test knows by name. HOW:
// depths N: through N calls of one function, and once from each of two functions at the same depth, three times.
// threads: eight threads take turns on two paths, 2,000 times each.
// plugins FILE...: each is loaded, where it gets the address of the one before, allocates and is unloaded.
// refused: asks for more than the device has.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fill.h"

#ifdef __clang__
#define CALLERS_NAMED __attribute__((noinline))
#else
#define CALLERS_NAMED __attribute__((noinline, noclone))
#endif

namespace {

constexpr size_t kSmall = 1 << 20;

}  // namespace

// Outside the namespace and not inlined: the test finds their names.
extern "C" {
CALLERS_NAMED CUresult by_left(size_t bytes) {
  CUdeviceptr block = 0;
  const CUresult result = cuMemAlloc_v2(&block, bytes);
  asm volatile("" ::: "memory");
  return result;
}
CALLERS_NAMED CUresult by_right(size_t bytes) {
  CUdeviceptr block = 0;
  const CUresult result = cuMemAlloc_v2(&block, bytes);
  asm volatile("nop" ::: "memory");
  return result;
}
CALLERS_NAMED CUresult deeper(int depth) {
  const CUresult result = depth > 0 ? deeper(depth - 1) : by_left(kSmall);
  asm volatile("" ::: "memory");
  return result;
}
}

namespace {

bool both_paths(int times) {
  bool good = true;
  for (int i = 0; i < times; ++i) {
    good = good && by_left(kSmall) == CUDA_SUCCESS && by_right(2 * kSmall) == CUDA_SUCCESS;
  }
  return good;
}

bool threads(CUcontext context) {
  std::vector<std::thread> all;
  std::atomic<bool> good{true};
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&, i] {
      cuCtxSetCurrent(context);
      for (int turn = 0; turn < 2000; ++turn) {
        const CUresult result = (turn + i) % 2 == 0 ? by_left(512) : by_right(1024);
        if (result != CUDA_SUCCESS) {
          good = false;
        }
      }
    });
  }
  for (std::thread &each : all) {
    each.join();
  }
  return good;
}

bool plugin(const char *path, void *&where) {
  void *const handle = dlopen(path, RTLD_NOW);
  const auto take = handle != nullptr ? reinterpret_cast<CUresult (*)()>(dlsym(handle, "take")) : nullptr;
  where = reinterpret_cast<void *>(take);
  return take != nullptr && take() == CUDA_SUCCESS && dlclose(handle) == 0;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  bool good = false;
  if (how == "depths") {
    good = deeper(std::atoi(argv[2])) == CUDA_SUCCESS && both_paths(3);
  } else if (how == "threads") {
    good = threads(context);
  } else if (how == "plugins") {
    void *first = nullptr;
    void *last = nullptr;
    good = plugin(argv[2], first);
    for (int i = 3; i < argc; ++i) {
      good = plugin(argv[i], last) && good;
    }
    dprintf(1, "same place: %d\n", first == last ? 1 : 0);
  } else if (how == "refused") {
    good = by_right(size_t{1} << 40) == CUDA_ERROR_OUT_OF_MEMORY;
  }
  return good ? 0 : 1;
}
