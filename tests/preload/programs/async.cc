// async CASE: synchronous allocations in mode async, reported in `name value` lines: codes, bytes that the simulated
// device holds, and counts of driver calls.
#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "simcuda/simcuda.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void say(const char *what, unsigned long long value) {
  std::printf("%s %llu\n", what, value);
}

void must(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  std::fprintf(stderr, "async: %d\n", static_cast<int>(code));
  std::exit(1);
}

CUdeviceptr take(std::size_t bytes) {
  CUdeviceptr block = 0;
  must(cuMemAlloc(&block, bytes));
  return block;
}

unsigned long long held(int device = 0) {
  simcuda_books books{};
  if (simcuda_device_books(device, &books) != 0) std::exit(2);
  return books.allocation_bytes + books.pool_bytes + books.physical_bytes;
}

void say_calls() {
  for (const char *symbol : {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemPoolCreate", "cuMemPoolSetAttribute",
                             "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuStreamCreate", "cuMemPoolTrimTo"}) {
    say(symbol, simcuda_calls(symbol));
  }
}

void served() {
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(take(10 * kMiB));
  say("held", held());
  for (const CUdeviceptr block : blocks) must(cuMemFree(block));
  must(cuCtxSynchronize());
  for (CUdeviceptr &block : blocks) block = take(10 * kMiB);
  say("held again", held());
  say_calls();
}

void first() {
  const CUdeviceptr block = take(kMiB);
  say("held", held());
  std::size_t free = 0, total = 0;
  must(cuMemGetInfo(&free, &total));
  say("free", free);
  say("total", total);
  must(cuMemFree(block));
  say_calls();
}

std::vector<CUdeviceptr> fill(std::size_t bytes, CUresult &code) {
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 77;
  for (code = cuMemAlloc(&block, bytes); code == CUDA_SUCCESS; code = cuMemAlloc(&block, bytes)) {
    blocks.push_back(block);
    block = 77;
  }
  say("null", block == 0);
  return blocks;
}

// Large blocks, and then small ones, of which the device needs nearly twice as much for each.
void tiny() {
  CUresult code = CUDA_SUCCESS;
  fill(20 * kMiB, code);
  say("code", code);
  fill(513, code);
  say("code", code);
  say("held", held());
}

// Fills up to the limit, and again; then with one block, and with managed memory.
void whole() {
  std::size_t free = 0, total = 0;
  for (int round = 0; round < 3; ++round) {
    CUresult code = CUDA_SUCCESS;
    const std::vector<CUdeviceptr> blocks = fill(16 * kMiB, code);
    say("blocks", blocks.size());
    say("refused", code);
    must(cuMemGetInfo(&free, &total));
    say("free", free);
    for (const CUdeviceptr block : blocks) must(cuMemFree(block));
  }
  must(cuMemGetInfo(&free, &total));
  say("free", free);
  CUdeviceptr all = 0;
  say("all in one", cuMemAlloc(&all, total));
  say("held", held());
  must(cuMemFree(all));
  CUdeviceptr managed = 0;
  say("all by another API", cuMemAllocManaged(&managed, total, CU_MEM_ATTACH_GLOBAL));
  say("nothing left", cuMemAlloc(&all, kMiB));
  must(cuMemFree(managed));
  say("all in one again", cuMemAlloc(&all, total));
  say("more", cuMemAlloc(&managed, kMiB));
}

// A context's blocks go with it, whichever context is left to free them through.
void contexts() {
  CUcontext first = nullptr, second = nullptr;
  must(cuCtxGetCurrent(&first));
  must(cuCtxCreate(&second, nullptr, 0, 0));
  CUdeviceptr block = take(200 * kMiB);
  must(cuCtxDestroy(second));
  must(cuCtxSetCurrent(first));
  say("dead", cuMemFree(block));
  say("with another context", cuMemAlloc(&block, 250 * kMiB));
  must(cuCtxDestroy(first));
  say("freed without a context", cuMemFree(block));
  must(cuCtxCreate(&first, nullptr, 0, 0));
  say("in the next one", cuMemAlloc(&block, 250 * kMiB));
  say("too much", cuMemAlloc(&block, 100 * kMiB));
}

void peers() {
  CUcontext here = nullptr, there = nullptr;
  must(cuCtxGetCurrent(&here));
  const CUdeviceptr block = take(kMiB);
  must(cuCtxCreate(&there, nullptr, 0, 1));
  const auto access = [&] {
    int flags = -1;
    must(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, block));
    return static_cast<unsigned long long>(flags);
  };
  say("before", access());
  say("enabled", cuCtxEnablePeerAccess(here, 0));
  say("after", access());
  say("enabled twice", cuCtxEnablePeerAccess(here, 0));
  // A pool that is made later has the same access, too.
  const CUdeviceptr other = take(kMiB);
  must(cuCtxSetCurrent(here));
  int flags = -1;
  must(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, other));
  say("the other way", static_cast<unsigned long long>(flags));
  say("enabled back", cuCtxEnablePeerAccess(there, 0));
  must(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, other));
  say("both ways", static_cast<unsigned long long>(flags));
  must(cuCtxSetCurrent(there));
  say("disabled", cuCtxDisablePeerAccess(here));
}

void peers_before(bool disabled) {
  CUcontext here = nullptr, there = nullptr;
  must(cuCtxGetCurrent(&here));
  must(cuCtxCreate(&there, nullptr, 0, 1));
  say("enabled", cuCtxEnablePeerAccess(here, 0));
  if (disabled) say("disabled", cuCtxDisablePeerAccess(here));
  must(cuCtxSetCurrent(here));
  const CUdeviceptr block = take(kMiB);
  must(cuCtxSetCurrent(there));
  int flags = -1;
  must(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, block));
  say("after", static_cast<unsigned long long>(flags));
}

void early_peers() {
  peers_before(false);
}

void former_peers() {
  peers_before(true);
}

void twice() {
  const CUdeviceptr block = take(kMiB);
  must(cuMemsetD8Async(block, 1, kMiB, nullptr));  // still running if streams lag
  say("inside", cuMemFree(block + 512));
  say("freed", cuMemFree(block));
  say("again", cuMemFree(block));
  say("again in stream order", cuMemFreeAsync(block, nullptr));
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  say("range", cuMemGetAddressRange(&base, &bytes, block + 100));
  unsigned type = 0;
  say("type", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + 100));
  CUipcMemHandle handle{};
  say("shared", cuIpcGetMemHandle(&handle, take(4 * kMiB)));
  const CUdeviceptr ordered = take(kMiB);
  say("freed in stream order", cuMemFreeAsync(ordered, nullptr));
  must(cuCtxSynchronize());
  say("again", cuMemFree(ordered));
}

// Blocks of a few bytes are freed and asked for again where the pool cannot grow.
void few_bytes() {
  std::vector<CUdeviceptr> blocks;
  for (const std::size_t bytes : {61U, 61U, 61U, 400U}) blocks.push_back(take(bytes));
  CUresult code = CUDA_SUCCESS;
  const std::vector<CUdeviceptr> rest = fill(kMiB, code);
  say("refused", code);
  for (const CUdeviceptr block : blocks) must(cuMemFree(block));
  must(cuCtxSynchronize());  // what is not known to be finished would go back to the pool, which cannot grow
  for (const std::size_t bytes : {193U, 61U, 60U, 100U, 401U, 512U}) {
    CUdeviceptr block = 0, base = 0, start = 0;
    if (const CUresult refused = cuMemAlloc(&block, bytes); refused != CUDA_SUCCESS) {
      say("refused", refused);
      continue;
    }
    std::size_t range = 0, size = 0;
    must(cuMemsetD8(block, 1, bytes));
    must(cuMemGetAddressRange(&base, &range, block + bytes - 1));
    must(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, block));
    must(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + bytes - 1));
    say("range", base == block && start == block && range == size ? range : 0);
  }
}

struct Case {
  const char *name;
  void (*run)();
};
constexpr Case kCases[] = {{"served", served},
                           {"first", first},
                           {"whole", whole},
                           {"tiny", tiny},
                           {"contexts", contexts},
                           {"peers", peers},
                           {"early_peers", early_peers},
                           {"former_peers", former_peers},
                           {"twice", twice},
                           {"few_bytes", few_bytes}};

}  // namespace

int main(int argc, char **argv) {
  CUcontext context = nullptr;
  must(cuInit(0));
  must(cuCtxCreate(&context, nullptr, 0, 0));
  for (const Case &each : kCases) {
    if (argc == 2 && std::strcmp(argv[1], each.name) == 0) {
      each.run();
      return 0;
    }
  }
  return 3;
}
