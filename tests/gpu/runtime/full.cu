// full [async]: allocates until it is refused, which must be cudaErrorMemoryAllocation with the pointer untouched, goes
// on, frees all, and uses the memory again. Prints what does not depend on the device's size.
#include <cstring>

#include "pattern.h"

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 20;

cudaError_t allocate(void **address, std::size_t bytes, bool stream_ordered) {
  return stream_ordered ? cudaMallocAsync(address, bytes, cudaStream_t{nullptr}) : cudaMalloc(address, bytes);
}

void release(void *address, bool stream_ordered) {
  MUST(stream_ordered ? cudaFreeAsync(address, cudaStream_t{nullptr}) : cudaFree(address));
}

// Ends with the refusal.
std::vector<void *> fill_the_device(bool stream_ordered) {
  int marker = 0;
  std::vector<void *> blocks;
  while (true) {
    void *address = &marker;
    const cudaError_t code = allocate(&address, kBlock, stream_ordered);
    if (code != cudaSuccess) {
      const cudaError_t last = cudaGetLastError();
      std::printf("refused: %s, last error %s, pointer %s\n", cudaGetErrorName(code), cudaGetErrorName(last),
                  address == &marker ? "untouched" : "changed");
      return blocks;
    }
    fill(address, 4096, static_cast<std::uint32_t>(blocks.size()), nullptr);
    blocks.push_back(address);
  }
}

void verify_and_free(const std::vector<void *> &blocks, Counters *counters, bool stream_ordered) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    verify(blocks[i], 4096, static_cast<std::uint32_t>(i), counters, nullptr);
    release(blocks[i], stream_ordered);
  }
  MUST(cudaDeviceSynchronize());
}

}  // namespace

int main(int count, char **arguments) {
  const bool stream_ordered = count > 1 && std::strcmp(arguments[1], "async") == 0;
  Counters *const counters = new_counters();
  std::size_t free_before = 0, free_full = 0, total = 0;
  MUST(cudaMemGetInfo(&free_before, &total));
  std::printf("free fits total: %d\n", free_before <= total ? 1 : 0);
  for (int round = 0; round < 2; ++round) {
    const std::vector<void *> blocks = fill_the_device(stream_ordered);
    MUST(cudaMemGetInfo(&free_full, &total));
    std::printf("several blocks: %d, less than two blocks free: %d\n", blocks.size() > 4 ? 1 : 0,
                free_full < 2 * kBlock ? 1 : 0);
    std::fprintf(stderr, "blocks=%zu free_full=%zu total=%zu\n", blocks.size(), free_full, total);
    verify_and_free(blocks, counters, stream_ordered);
  }
  const Counters seen = read(counters);
  std::printf("wrong=%llu\n", seen.wrong);
  return seen.wrong == 0 ? 0 : 3;
}
