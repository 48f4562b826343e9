// The number of blocks of a function that fit a multiprocessor, by threads, blocks and shared memory; registers never
// limit. Layer: code.h. Threads: any.
#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/code.h"
#include "tests/simcuda/device_attributes.h"

namespace simcuda {
namespace {

constexpr std::size_t kSharedPerMultiprocessor = 233472, kSharedReservedPerBlock = 1024;
constexpr int kThreads = 2048, kBlocks = 32, kMultiprocessors = 128, kLargestBlock = 1024, kWarp = 32;

int blocks_of(int block_size, std::size_t shared_bytes) {
  const auto by_shared = static_cast<int>(kSharedPerMultiprocessor / (shared_bytes + kSharedReservedPerBlock));
  return std::min({kBlocks, kThreads / block_size, by_shared});
}

CUresult check(CUfunction func) {
  const Lock lock(driver().mutex);
  return find_function(func) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return simcuda::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags) {
  if (const CUresult error = check(func); error != CUDA_SUCCESS) return error;
  if (numBlocks == nullptr || blockSize <= 0 || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  *numBlocks = blockSize > kLargestBlock ? 0 : blocks_of(blockSize, dynamicSMemSize);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                          int blockSizeLimit) {
  return simcuda::cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                            dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags) {
  if (const CUresult error = check(func); error != CUDA_SUCCESS) return error;
  if (minGridSize == nullptr || blockSize == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  const int largest = blockSizeLimit <= 0 ? kLargestBlock : std::min(blockSizeLimit, kLargestBlock);
  int best_threads = 0;
  for (int size = std::max(kWarp, largest / kWarp * kWarp); size >= kWarp; size -= kWarp) {
    const std::size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
    const int blocks = blocks_of(size, shared);
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *blockSize = size;
    *minGridSize = blocks * kMultiprocessors;
  }
  return best_threads == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
  if (const CUresult error = check(func); error != CUDA_SUCCESS) return error;
  if (dynamicSmemSize == nullptr || numBlocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t share = kSharedPerMultiprocessor / static_cast<std::size_t>(numBlocks);
  *dynamicSmemSize = share > kSharedReservedPerBlock ? share - kSharedReservedPerBlock : 0;
  return CUDA_SUCCESS;
}

}  // namespace simcuda
