// The same through the runtime API: allocations of many sizes, pinned and managed memory, kernels, and refusals with
// the runtime's code. Prints failed checks, and the number of passed ones.
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include <vector>

#include "tests/preload/programs/checks.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
preload::Checks checks;

template <class Take, class Give>
void sizes(const char *what, size_t most, Take take, Give give) {
  for (size_t size = 1; size <= most; size *= 2) {
    for (const size_t each : {size, size + 1}) {
      void *block = nullptr;
      checks.expect(what, take(&block, each) == cudaSuccess && block != nullptr && give(block) == cudaSuccess);
    }
  }
}

void refusals() {
  void *block = &checks;
  checks.expect("too much", cudaMalloc(&block, 4096 * kMiB) == cudaErrorMemoryAllocation && block == nullptr);
  checks.expect("the last error is that one", cudaGetLastError() == cudaErrorMemoryAllocation);
  checks.expect("and is over", cudaGetLastError() == cudaSuccess);
  checks.expect("too much in stream order", cudaMallocAsync(&block, 4096 * kMiB, nullptr) == cudaErrorMemoryAllocation);
  cudaGetLastError();
  checks.expect("too much managed",
                cudaMallocManaged(&block, 4096 * kMiB, cudaMemAttachGlobal) == cudaErrorMemoryAllocation);
  cudaGetLastError();
  checks.expect("null", block == nullptr);
  checks.expect("all of it", cudaMalloc(&block, 1000 * kMiB) == cudaSuccess);
  size_t free_bytes = 0;
  size_t total = 0;
  checks.expect("total", cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && total == 1024 * kMiB);
  checks.expect("what is left", free_bytes <= 24 * kMiB);
  checks.expect("given back", cudaFree(block) == cudaSuccess);
}

}  // namespace

int main() {
  sizes(
      "cudaMalloc", 512 * kMiB, [](void **block, size_t size) { return cudaMalloc(block, size); }, cudaFree);
  sizes(
      "cudaMallocManaged", 512 * kMiB,
      [](void **block, size_t size) { return cudaMallocManaged(block, size, cudaMemAttachGlobal); }, cudaFree);
  sizes(
      "cudaMallocHost", 8 * kMiB, [](void **block, size_t size) { return cudaMallocHost(block, size); }, cudaFreeHost);
  sizes(
      "cudaHostAlloc", 8 * kMiB, [](void **block, size_t size) { return cudaHostAlloc(block, size, 0); }, cudaFreeHost);
  sizes(
      "cudaHostRegister", 8 * kMiB,
      [](void **block, size_t size) {
        *block = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
        return cudaHostRegister(*block, size, 0);
      },
      [](void *block) {
        const cudaError_t code = cudaHostUnregister(block);
        free(block);
        return code;
      });
  refusals();
  return checks.done();
}
