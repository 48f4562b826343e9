// Frees: of memory allocated by another function, of memory unknown to Ration, and of invalid addresses.
#include <atomic>
#include <random>
#include <thread>

#include "cases.h"

namespace failures {
namespace {

constexpr size_t kBytes = 64 * kMiB;

TEST_CASE("memory unknown to Ration is freed by the driver", "[frees]") {
  enter();
  const auto allocate = behind_ration("cuMemAlloc_v2", &cuMemAlloc_v2);
  REQUIRE(allocate != &cuMemAlloc_v2);
  const CUdeviceptr known = take(kMiB);
  const unsigned long long before = held();
  for (const bool in_order : {false, true}) {
    CUdeviceptr foreign = 0;
    REQUIRE(allocate(&foreign, kBytes) == CUDA_SUCCESS);
    REQUIRE(held() == before + kBytes);
    REQUIRE((in_order ? cuMemFreeAsync(foreign, nullptr) : cuMemFree_v2(foreign)) == CUDA_SUCCESS);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(held() == before);
    REQUIRE(cuMemFree_v2(foreign) == CUDA_ERROR_INVALID_VALUE);
  }
  REQUIRE(cuMemFree_v2(known) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("memory freed through another function is released with its charge", "[frees]") {
  enter();
  const CUmemoryPool pool = keeping_pool(0);
  for (int round = 0; round < 20; ++round) {  // 20 times 5 blocks would not fit
    CUdeviceptr plain = take(kBytes);
    CUdeviceptr pitched = 0;
    CUdeviceptr ordered = 0;
    CUdeviceptr from_pool = 0;
    CUdeviceptr managed = 0;
    size_t pitch = 0;
    REQUIRE(cuMemAllocPitch_v2(&pitched, &pitch, kBytes / 1024, 1024, 4) == CUDA_SUCCESS);
    REQUIRE(cuMemAllocAsync(&ordered, kBytes, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemAllocFromPoolAsync(&from_pool, kBytes, pool, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(plain, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(pitched, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemFree_v2(ordered) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(from_pool, CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    REQUIRE(cuMemFree_v2(managed) == CUDA_SUCCESS);
    REQUIRE(held() <= kLimit);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("memory of any age can be freed in any order and from any thread", "[frees]") {
  const CUcontext context = enter();
  CUdeviceptr blocks[100];
  for (CUdeviceptr &block : blocks) {
    block = take(kMiB);
  }
  std::atomic<int> wrong{0};
  std::thread([&] {
    cuCtxSetCurrent(context);
    for (size_t i = 0; i < 100; i += 2) {
      wrong += cuMemFree_v2(blocks[i]) == CUDA_SUCCESS ? 0 : 1;
    }
  }).join();
  for (size_t i = 99; i < 100; i -= 2) {
    wrong += cuMemFree_v2(blocks[i]) == CUDA_SUCCESS ? 0 : 1;
  }
  REQUIRE(wrong == 0);
  all_is_free();
}

// The expected codes are the driver's own, from calls that bypass Ration.
TEST_CASE("a free of an invalid address returns the driver's code", "[frees]") {
  enter();
  const CUdeviceptr block = take(kBytes);
  const auto release = behind_ration("cuMemFree_v2", &cuMemFree_v2);
  const auto release_in_order = behind_ration("cuMemFreeAsync", &cuMemFreeAsync);
  std::mt19937_64 random(20260922);
  for (int i = 0; i < 2000; ++i) {
    const CUdeviceptr nothing = random() >> random() % 64 | 1;  // odd: no block has this address
    REQUIRE(cuMemFree_v2(nothing) == release(nothing));
    REQUIRE(cuMemFreeAsync(nothing, nullptr) == release_in_order(nothing, nullptr));
  }
  REQUIRE(cuMemFree_v2(0) == release(0));
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  all_is_free();
}

}  // namespace
}  // namespace failures
