// The usual sample programs for such software, each with its expected result.
#include <stdlib.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cases.h"

namespace failures {
namespace {

// From one byte to `most`: each power of two and its neighbours.
std::vector<size_t> sizes_up_to(size_t most) {
  std::vector<size_t> sizes;
  for (size_t power = 1; power <= most; power *= 2) {
    for (const size_t size : {power - 1, power, power + 1}) {
      if (size > 0 && size <= most && (sizes.empty() || sizes.back() < size)) {
        sizes.push_back(size);
      }
    }
  }
  return sizes;
}

TEST_CASE("blocks of every size from a byte to the limit can be allocated and freed", "[samples]") {
  enter();
  const std::vector<size_t> sizes = sizes_up_to(kLimit - kSlack);
  REQUIRE(sizes.size() > 80);
  for (const size_t size : sizes) {
    const CUdeviceptr block = take(size);
    REQUIRE(cuMemsetD8_v2(block + size - 1, 9, 1) == CUDA_SUCCESS);
    unsigned char last = 0;
    REQUIRE(cuMemcpyDtoH_v2(&last, block + size - 1, 1) == CUDA_SUCCESS);
    REQUIRE(last == 9);
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  }
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 7; ++i) {
    blocks.push_back(take(128 * kMiB));
  }
  refused(129 * kMiB);
  for (const CUdeviceptr block : blocks) {
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  }
  all_is_free();
}

TEST_CASE("ten blocks allocated and freed together restore the free memory each time", "[samples]") {
  enter();
  for (int round = 0; round < 50; ++round) {
    CUdeviceptr blocks[10];
    for (CUdeviceptr &block : blocks) {
      block = take(100 * kMiB);
    }
    refused(100 * kMiB);
    for (const CUdeviceptr block : blocks) {
      REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
    }
  }
  all_is_free();
}

TEST_CASE("pinned memory of every size costs none of the limit", "[samples]") {
  enter();
  for (const size_t size : sizes_up_to(16 * kMiB)) {
    void *one = nullptr;
    void *two = nullptr;
    REQUIRE(cuMemAllocHost_v2(&one, size) == CUDA_SUCCESS);
    REQUIRE(cuMemHostAlloc(&two, size, 0) == CUDA_SUCCESS);
    void *const own = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    REQUIRE(cuMemHostRegister_v2(own, size, 0) == CUDA_SUCCESS);
    static_cast<char *>(one)[size - 1] = 1;
    static_cast<char *>(two)[size - 1] = 2;
    REQUIRE(memory().free == kLimit);
    REQUIRE(cuMemHostUnregister(own) == CUDA_SUCCESS);
    free(own);
    REQUIRE(cuMemFreeHost(one) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeHost(two) == CUDA_SUCCESS);
  }
}

TEST_CASE("managed blocks of every size live side by side up to the limit", "[samples]") {
  enter();
  std::vector<CUdeviceptr> blocks;
  size_t sum = 0;
  for (const size_t size : sizes_up_to(128 * kMiB)) {
    CUdeviceptr block = kBefore;
    const CUresult code = cuMemAllocManaged(&block, size, CU_MEM_ATTACH_GLOBAL);
    if (code == CUDA_SUCCESS) {
      sum += size;
      blocks.push_back(block);
      *reinterpret_cast<volatile char *>(block + size - 1) = 3;  // from the host as well
    } else {
      REQUIRE(code == CUDA_ERROR_OUT_OF_MEMORY);
      REQUIRE(block == 0);
    }
  }
  REQUIRE(sum > kLimit / 2);
  REQUIRE(sum <= kLimit);
  REQUIRE(memory().free <= kLimit - sum);
  for (const CUdeviceptr block : blocks) {
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  }
  all_is_free();
}

TEST_CASE("an array of 32 MiB takes 32 MiB of the limit", "[samples]") {
  enter();
  CUarray flat = nullptr;
  CUarray deep = nullptr;
  const CUDA_ARRAY_DESCRIPTOR shape = {4096, 2048, CU_AD_FORMAT_FLOAT, 1};
  REQUIRE(cuArrayCreate_v2(&flat, &shape) == CUDA_SUCCESS);
  REQUIRE(memory().free == kLimit - 32 * kMiB);
  const CUDA_ARRAY3D_DESCRIPTOR deep_shape = {512, 512, 32, CU_AD_FORMAT_FLOAT, 1, 0};
  REQUIRE(cuArray3DCreate_v2(&deep, &deep_shape) == CUDA_SUCCESS);
  REQUIRE(memory().free == kLimit - 64 * kMiB);
  REQUIRE(cuArrayDestroy(flat) == CUDA_SUCCESS);
  REQUIRE(cuArrayDestroy(deep) == CUDA_SUCCESS);
  REQUIRE(memory().free == kLimit);
}

TEST_CASE("four threads that create physical memory together get exactly the limit", "[samples]") {
  enter();
  std::atomic<int> made{0};
  std::atomic<int> refusals{0};
  std::atomic<int> wrong{0};
  std::atomic<int> waiting{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      std::vector<CUmemGenericAllocationHandle> handles;
      for (int i = 0; i < 6; ++i) {
        CUmemGenericAllocationHandle handle = 0;
        const CUresult code = make_physical(&handle, 64 * kMiB, 0);
        if (code == CUDA_SUCCESS) {
          ++made;
          handles.push_back(handle);
        } else {
          wrong += code == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 1;
          ++refusals;
        }
      }
      ++waiting;
      while (waiting < 4) {
        std::this_thread::yield();
      }
      for (const CUmemGenericAllocationHandle handle : handles) {
        wrong += cuMemRelease(handle) == CUDA_SUCCESS ? 0 : 1;
      }
    });
  }
  for (std::thread &each : threads) {
    each.join();
  }
  REQUIRE(wrong == 0);
  REQUIRE(made == 16);
  REQUIRE(refusals == 8);
  all_is_free();
}

TEST_CASE("kernels run in a loop and work on one device does not wait for another", "[samples]") {
  static std::atomic<bool> open{false};
  static std::atomic<int> runs{0};
  REQUIRE(simcuda_register_kernel(
              "wait",
              [](const simcuda_launch *) {
                while (!open) {
                  std::this_thread::yield();
                }
              },
              nullptr, 0) == 0);
  REQUIRE(simcuda_register_kernel(
              "count", [](const simcuda_launch *) { ++runs; }, nullptr, 0) == 0);
  const auto function_named = [](const char *name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    REQUIRE(cuModuleLoadData(&module, "simcuda") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
    return function;
  };
  const auto launch = [](CUfunction function) {
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  };
  enter(0);
  const CUdeviceptr behind_it = take(kMiB);
  launch(function_named("wait"));
  REQUIRE(cuMemFreeAsync(behind_it, nullptr) == CUDA_SUCCESS);
  const CUcontext second = enter(1);
  const CUfunction count = function_named("count");
  for (int i = 0; i < 10; ++i) {  // many times the device's memory in total
    const CUdeviceptr block = take(10 * kMiB);
    launch(count);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE((i % 2 == 0 ? cuMemFree_v2(block) : cuMemFreeAsync(block, nullptr)) == CUDA_SUCCESS);
  }
  REQUIRE(runs == 10);
  open = true;
  REQUIRE(cuCtxSynchronize_v2(second) == CUDA_SUCCESS);
}

TEST_CASE("a block above the limit is refused and one of the limit is granted", "[samples]") {
  enter();
  refused(4096 * kMiB);
  refused(kLimit + 1);
  REQUIRE(cuMemFree_v2(take(kLimit)) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace failures
