// Charges: their size, device and duration, for pitched blocks, managed and physical memory, and arrays.
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "cases.h"

namespace failures {
namespace {

TEST_CASE("a pitched block is charged its rows including their padding", "[charges]") {
  enter();
  const CUdeviceptr first = take(kMiB);
  const bool driver_own = held() == kMiB;  // otherwise it lies in a slab
  for (const unsigned element : {4U, 8U, 16U}) {
    for (const size_t width : {1U, 16U, 500U, 511U, 512U, 513U, 4097U, 100000U}) {
      for (const size_t height : {1U, 7U, 100U}) {
        const size_t free_before = memory().free;
        const unsigned long long held_before = held();
        CUdeviceptr block = 0;
        size_t pitch = 0;
        REQUIRE(cuMemAllocPitch_v2(&block, &pitch, width, height, element) == CUDA_SUCCESS);
        REQUIRE(pitch >= width);
        const size_t charged = free_before - memory().free;
        CAPTURE(element, width, height, pitch, charged);
        REQUIRE(charged >= pitch * height);
        REQUIRE(charged < pitch * height + 2 * kGranule);
        if (driver_own) {  // the driver reports its size to the byte
          REQUIRE(charged <= held() - held_before);
          REQUIRE(charged + kGranule > held() - held_before);
        }
        REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
      }
    }
  }
  REQUIRE(cuMemFree_v2(first) == CUDA_SUCCESS);
  all_is_free();
}

// A block of 60 MiB, allocated in one of three ways.
CUresult take_somehow(unsigned which, CUdeviceptr *block) {
  size_t pitch = 0;
  switch (which % 3) {
    case 0:
      return cuMemAllocManaged(block, 60 * kMiB, CU_MEM_ATTACH_GLOBAL);
    case 1:
      return cuMemAllocPitch_v2(block, &pitch, 60 * 1024, 1024, 4);
    default:
      return cuMemAlloc_v2(block, 60 * kMiB);
  }
}

// Each round eight threads request 40 blocks, where 17 fit; none is freed before all requests are done.
TEST_CASE("each of several racing requests is counted or refused and never live but uncounted", "[charges]") {
  constexpr unsigned kThreads = 8;
  const CUcontext context = enter();
  std::atomic<int> live{0};
  std::atomic<int> wrong{0};
  std::atomic<int> refusals{0};
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      wrong += cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : 1;
      for (unsigned round = 0; round < 40; ++round) {
        std::vector<CUdeviceptr> mine;
        for (unsigned i = 0; i < 5; ++i) {
          CUdeviceptr block = kBefore;
          const CUresult code = take_somehow(thread + round + i, &block);
          if (code == CUDA_SUCCESS) {
            mine.push_back(block);
            wrong += ++live <= 17 ? 0 : 1;
          } else {
            wrong += code == CUDA_ERROR_OUT_OF_MEMORY && block == 0 ? 0 : 1;
            ++refusals;
          }
        }
        together.arrive_and_wait();
        simcuda_books books{};
        simcuda_device_books(0, &books);
        wrong += books.allocation_bytes + books.physical_bytes <= kLimit ? 0 : 1;
        live -= static_cast<int>(mine.size());
        together.arrive_and_wait();
        for (const CUdeviceptr block : mine) {
          wrong += cuMemFree_v2(block) == CUDA_SUCCESS ? 0 : 1;
        }
        together.arrive_and_wait();
      }
    });
  }
  for (std::thread &each : threads) {
    each.join();
  }
  REQUIRE(wrong == 0);
  REQUIRE(refusals >= 40 * (40 - 17));
  all_is_free();
}

TEST_CASE("physical memory is charged to the device of its properties", "[charges]") {
  const CUcontext second = enter(1);
  const CUcontext first = enter(0);
  CUmemGenericAllocationHandle handles[2] = {};
  REQUIRE(make_physical(&handles[0], 400 * kMiB, 1) == CUDA_SUCCESS);
  REQUIRE(held(1) == 400 * kMiB);
  REQUIRE(held(0) == 0);
  REQUIRE(memory().free == kLimit);
  REQUIRE(make_physical(&handles[1], 200 * kMiB, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(make_physical(&handles[1], 600 * kMiB, 0) == CUDA_SUCCESS);
  REQUIRE(memory().free == kLimit - 600 * kMiB);
  REQUIRE(cuCtxSetCurrent(second) == CUDA_SUCCESS);
  REQUIRE(memory().free == kOtherLimit - 400 * kMiB);
  REQUIRE(cuMemRelease(handles[1]) == CUDA_SUCCESS);  // of the other device
  REQUIRE(cuMemRelease(handles[0]) == CUDA_SUCCESS);
  all_is_free(kOtherLimit);
  REQUIRE(cuCtxSetCurrent(first) == CUDA_SUCCESS);
  all_is_free();
}

TEST_CASE("threads that create and release physical memory and free addresses lose no byte of either", "[charges]") {
  const CUcontext context = enter();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      wrong += cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : 1;
      for (int i = 0; i < 300; ++i) {
        if (thread % 2 == 0) {
          CUmemGenericAllocationHandle handle = 0;
          wrong += make_physical(&handle, 2 * kMiB, 0) == CUDA_SUCCESS ? 0 : 1;
          wrong += cuMemFree_v2(handle | 1) == CUDA_ERROR_INVALID_VALUE ? 0 : 1;  // a handle is no address
          wrong += cuMemRelease(handle) == CUDA_SUCCESS ? 0 : 1;
        } else {
          CUdeviceptr block = 0;
          wrong += cuMemAlloc_v2(&block, kMiB) == CUDA_SUCCESS ? 0 : 1;
          wrong += cuMemRelease(block) != CUDA_SUCCESS ? 0 : 1;  // an address is no handle
          wrong += cuMemFree_v2(block) == CUDA_SUCCESS ? 0 : 1;
        }
      }
    });
  }
  for (std::thread &each : threads) {
    each.join();
  }
  REQUIRE(wrong == 0);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  simcuda_books books{};
  REQUIRE(simcuda_device_books(0, &books) == 0);
  REQUIRE(books.physical_bytes == 0);
  all_is_free();
}

TEST_CASE("each array is charged at least its cost on the device", "[charges]") {
  enter();
  for (const size_t side : {1U, 63U, 1000U, 4096U}) {
    for (const unsigned channels : {1U, 2U, 4U}) {
      for (const size_t depth : {0U, 3U, 10U}) {
        const size_t free_before = memory().free;
        const unsigned long long held_before = held();
        const CUDA_ARRAY3D_DESCRIPTOR shape = {side, side, depth, CU_AD_FORMAT_UNSIGNED_INT8, channels, 0};
        CUarray array = nullptr;
        REQUIRE(cuArray3DCreate_v2(&array, &shape) == CUDA_SUCCESS);
        const unsigned long long given = held() - held_before;
        const size_t charged = free_before - memory().free;
        CAPTURE(side, channels, depth, given, charged);
        REQUIRE(given > 0);
        REQUIRE(charged >= given);
        REQUIRE(cuArrayDestroy(array) == CUDA_SUCCESS);
        REQUIRE(memory().free == free_before);
      }
    }
  }
}

}  // namespace
}  // namespace failures
