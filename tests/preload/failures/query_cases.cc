// Total and free memory from CUDA and NVML, with limits below, at and above the device's memory.
#include <nvml.h>

#include "cases.h"

namespace failures {
namespace {

constexpr size_t kDevice = 4096 * kMiB;  // the memory of a simulated device

nvmlMemory_t nvml_memory() {
  nvmlDevice_t device = nullptr;
  nvmlMemory_t one{};
  nvmlMemory_v2_t two{};
  two.version = nvmlMemory_v2;
  REQUIRE(nvmlInit_v2() == NVML_SUCCESS);
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS);
  REQUIRE(nvmlDeviceGetMemoryInfo(device, &one) == NVML_SUCCESS);
  REQUIRE(nvmlDeviceGetMemoryInfo_v2(device, &two) == NVML_SUCCESS);
  REQUIRE(one.free + one.used == one.total);
  REQUIRE(one.used <= one.total);
  REQUIRE(two.reserved + two.free + two.used == two.total);
  REQUIRE(two.used <= two.total);
  REQUIRE(two.total == one.total);
  return one;
}

void total_is(size_t bytes) {
  size_t total = 0;
  REQUIRE(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS);
  REQUIRE(total == bytes);
  REQUIRE(memory().total == bytes);
  REQUIRE(nvml_memory().total == bytes);
}

TEST_CASE("a limit below the size of a context is reported unchanged and usable", "[questions]") {
  enter();
  total_is(64 * kMiB);
  REQUIRE(memory().free == 64 * kMiB);
  REQUIRE(nvml_memory().used == 0);
  const CUdeviceptr block = take(60 * kMiB);
  refused(8 * kMiB);
  REQUIRE(memory().free <= 4 * kMiB);
  REQUIRE(nvml_memory().free == memory().free);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  all_is_free(64 * kMiB);
}

TEST_CASE("a context charged more than the limit leaves no free memory and nothing wraps", "[questions]") {
  enter();
  total_is(64 * kMiB);
  REQUIRE(memory().free == 0);
  REQUIRE(nvml_memory().free == 0);
  REQUIRE(nvml_memory().used == 64 * kMiB);
  refused(1);
}

TEST_CASE("a charged context counts as used memory as on the device itself", "[questions]") {
  enter();
  simcuda_books books{};
  REQUIRE(simcuda_device_books(0, &books) == 0);
  REQUIRE(memory().free == kLimit - books.context_bytes);
  const CUdeviceptr block = take(100 * kMiB);
  REQUIRE(nvml_memory().used >= books.context_bytes + 100 * kMiB);
  refused(kLimit - books.context_bytes - 100 * kMiB + 1);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  refused(kLimit - books.context_bytes + 1);
  all_is_free(kLimit - books.context_bytes);
}

TEST_CASE("a reserve of the whole device leaves nothing and is reported as nothing", "[questions]") {
  enter();
  REQUIRE(memory().free == 0);
  REQUIRE(nvml_memory().free == 0);
  refused(1);
  CUdeviceptr block = kBefore;
  REQUIRE(cuMemAllocAsync(&block, 1, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(cuMemAllocManaged(&block, 1, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(block == 0);
}

TEST_CASE("a limit above the device is reported as the device", "[questions]") {
  enter();
  total_is(kDevice);
  size_t free_really = 0;
  size_t total = 0;
  REQUIRE(behind_ration("cuMemGetInfo_v2", &cuMemGetInfo_v2)(&free_really, &total) == CUDA_SUCCESS);
  REQUIRE(memory().free == free_really);
  REQUIRE(nvml_memory().free == free_really);
  refused(kDevice);
}

TEST_CASE("without a limit the device is reported unchanged", "[questions]") {
  enter();
  size_t free_really = 0;
  size_t total = 0;
  REQUIRE(behind_ration("cuMemGetInfo_v2", &cuMemGetInfo_v2)(&free_really, &total) == CUDA_SUCCESS);
  total_is(total);
  REQUIRE(memory().free == free_really);
}

TEST_CASE("managed memory that is only counted does not make the used bytes wrap", "[questions]") {
  enter();
  CUdeviceptr managed = 0;
  REQUIRE(cuMemAllocManaged(&managed, 200 * kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  total_is(64 * kMiB);
  REQUIRE(memory().free == 64 * kMiB);
  const CUdeviceptr block = take(60 * kMiB);
  REQUIRE(nvml_memory().used >= 60 * kMiB);
  REQUIRE(cuMemFree_v2(managed) == CUDA_SUCCESS);
  REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
  REQUIRE(memory().free + kSlack >= 64 * kMiB);
}

}  // namespace
}  // namespace failures
