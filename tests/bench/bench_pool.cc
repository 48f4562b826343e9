// Cost of an allocation and its free in mode pool through the whole preloaded library, linked directly to the simulated
// driver; the cost in the pool alone, and that of the driver call that such a pair contains. Child processes in turns;
// the minimum of each figure.
#include <cuda.h>
#include <simcuda/simcuda.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "measured.h"
#include "paired.h"
#include "pairs.h"
#include "pool_memory.h"
#include "second_thread.h"

using namespace ration::bench;

namespace {

constexpr int kPairs = 2'000;
const char *const kContained = "cuCtxGetCurrent";

struct DriverMemory {
  std::uintptr_t allocate(std::uint64_t bytes) {
    CUdeviceptr address = 0;
    if (cuMemAlloc(&address, bytes) != CUDA_SUCCESS) throw std::runtime_error("no device memory");
    return address;
  }
  void free(std::uintptr_t block) { cuMemFree(block); }
};

// least_ns warms up with its first batches.
template <class Memory>
void measure(Memory &memory) {
  std::vector<std::uintptr_t> blocks = fill(memory);
  std::printf("lifo_1000 %f\n", least_ns(kPairs, [&] { allocate_and_free(memory, kPairs); }));
  std::printf("replace_1000 %f\n", least_ns(kPairs, [&] { replace(memory, blocks, kPairs); }));
}

template <class Work>
double calls_each(Work &&work) {
  simcuda_calls_reset();
  work();
  return static_cast<double>(simcuda_calls(kContained)) / kPairs;
}

int of_driver() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  DriverMemory memory;
  measure(memory);
  std::vector<std::uintptr_t> blocks = fill(memory);
  std::printf("lifo_1000_calls %f\n", calls_each([&] { allocate_and_free(memory, kPairs); }));
  std::printf("replace_1000_calls %f\n", calls_each([&] { replace(memory, blocks, kPairs); }));
  std::printf("get_current %f\n", least_ns(kPairs, [] {
                for (int i = 0; i < kPairs; ++i) {
                  CUcontext current = nullptr;
                  cuCtxGetCurrent(&current);
                }
              }));
  return 0;
}

template <class Memory>
int of_pool() {
  Memory memory(kSlabBytes);
  measure(memory);
  return 0;
}

int child(const char *what) {
  const SecondThread second_thread;
  if (std::strcmp(what, "alone") == 0) return of_pool<PoolMemory>();
  return std::strcmp(what, "quarantined") == 0 ? of_pool<QuarantinedMemory>() : of_driver();
}

// Calls are counted, not timed: any round's number will do.
void take_turn(Figures &figures, const char *suffix, const char *what, Under under) {
  for (const auto &[name, value] : child_figures({"/proc/self/exe", "--child", what}, under)) {
    if (name.ends_with("_calls")) {
      figures.set(name + suffix, "calls", value);
    } else {
      figures.least(name + suffix, "ns", value);
    }
  }
}

void run(const Arguments &arguments) {
  pin();
  Figures figures;
  for (int round = 0; round < arguments.rounds; ++round) {
    take_turn(figures, "_driver", "driver", Under::kNothing);
    take_turn(figures, "_alone", "alone", Under::kNothing);
    take_turn(figures, "_quarantined", "quarantined", Under::kNothing);
    take_turn(figures, "_through", "driver", Under::kPool);
    take_turn(figures, "_slabs", "driver", Under::kSlabs);
    if (!packaged_library().empty()) take_turn(figures, "_packaged", "driver", Under::kPackaged);
  }
  figures.report("pool", arguments.json);
}

}  // namespace

int main(int count, char **arguments) {
  try {
    if (count == 3 && std::strcmp(arguments[1], "--child") == 0) return child(arguments[2]);
    run(read_arguments(count, arguments, 20));
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "bench_pool: %s\n", failure.what());
    return 1;
  }
}
