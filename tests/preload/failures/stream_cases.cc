// Stream-ordered memory: the code of a refusal, memory kept by pools, endless allocation and free.
#include <random>
#include <vector>

#include "cases.h"

namespace failures {
namespace {

CUstream new_stream() {
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  return stream;
}

CUdeviceptr take_in(CUstream stream, size_t bytes) {
  CUdeviceptr block = 0;
  REQUIRE(cuMemAllocAsync(&block, bytes, stream) == CUDA_SUCCESS);
  return block;
}

TEST_CASE("a stream-ordered refusal is out of memory and sets the address to 0", "[streams]") {
  enter();
  const CUmemoryPool pool = keeping_pool(0);
  for (const size_t bytes : {kLimit + 1, 2 * kLimit, SIZE_MAX / 2}) {
    CUdeviceptr block = kBefore;
    REQUIRE(cuMemAllocAsync(&block, bytes, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuMemAllocAsync_ptsz(&block, bytes, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuMemAllocFromPoolAsync(&block, bytes, pool, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(cuMemAllocFromPoolAsync_ptsz(&block, bytes, pool, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE(block == 0);
  }
  REQUIRE(memory().free == kLimit);
}

TEST_CASE("memory freed in a stream of another context comes back", "[streams]") {
  const CUcontext here = enter();
  enter();
  CUstream elsewhere = nullptr;
  REQUIRE(cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(here) == CUDA_SUCCESS);
  for (int round = 0; round < 20; ++round) {
    CUdeviceptr block = 0;
    REQUIRE(cuMemAllocManaged(&block, 100 * kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(block, elsewhere) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(elsewhere) == CUDA_SUCCESS);
  }
  all_is_free(kLimit);
}

TEST_CASE("memory that a pool keeps after its frees stays charged until it is released", "[streams]") {
  enter();
  const CUmemoryPool pool = keeping_pool(0);
  std::vector<CUdeviceptr> blocks(15);
  for (CUdeviceptr &block : blocks) {
    REQUIRE(cuMemAllocFromPoolAsync(&block, 64 * kMiB, pool, nullptr) == CUDA_SUCCESS);
  }
  const unsigned long long kept = held();
  REQUIRE(kept >= 960 * kMiB);
  refused(700 * kMiB);
  for (const CUdeviceptr block : blocks) {
    REQUIRE(cuMemFreeAsync(block, nullptr) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(held() == kept);  // the pool keeps all of it
  const CUdeviceptr block = take(700 * kMiB);
  REQUIRE(held() <= kLimit);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  REQUIRE(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("stream-ordered memory is charged to its own device, not to the freeing stream's", "[streams]") {
  const CUcontext second = enter(1);
  const CUmemoryPool pool = keeping_pool(1);
  CUdeviceptr block = 0;
  REQUIRE(cuMemAllocFromPoolAsync(&block, 320 * kMiB, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(memory().free <= kOtherLimit - 320 * kMiB);
  const CUcontext first = enter(0);
  REQUIRE(memory().free == kLimit);
  REQUIRE(cuMemFreeAsync(block, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(memory().free == kLimit);  // exactly the limit
  REQUIRE(held(1) >= 320 * kMiB);    // still in the pool of its own device
  const CUdeviceptr all = take(kLimit - kSlack);
  REQUIRE(cuCtxSetCurrent(second) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
  all_is_free(kOtherLimit);
  REQUIRE(cuMemFree_v2(all) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(first) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("endless stream-ordered allocation and free is never refused", "[streams]") {
  enter();
  const CUstream streams[] = {nullptr, new_stream(), new_stream()};
  for (int round = 0; round < 600; ++round) {
    const CUstream stream = streams[round % 3];
    REQUIRE(cuMemFreeAsync(take_in(stream, 640 * kMiB), stream) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  std::mt19937 random(96);
  std::vector<CUdeviceptr> live;
  for (int round = 0; round < 1500; ++round) {
    live.push_back(take_in(streams[random() % 3], (1 + random() % 200) * kMiB));
    if (live.size() > 3) {
      const size_t which = random() % live.size();
      REQUIRE(cuMemFreeAsync(live[which], streams[random() % 3]) == CUDA_SUCCESS);
      live[which] = live.back();
      live.pop_back();
    }
    REQUIRE(held() <= kLimit);
  }
  for (const CUdeviceptr block : live) {
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  }
  all_is_free();
}

}  // namespace
}  // namespace failures
