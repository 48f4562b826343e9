// Device memory: granted and refused allocations, and their cost.
#include <algorithm>
#include <cstdint>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("without a current context there is no allocation, and no free but of a null pointer") {
  start_driver();
  CUcontext none = nullptr;
  REQUIRE(cuCtxGetCurrent(&none) == CUDA_SUCCESS);
  REQUIRE(none == nullptr);
  CUdeviceptr address = kUntouched;
  std::size_t free = 0, total = 0;
  // H100, H200, driver 580.159: 201, address 0; then 0
  CHECK(cuMemAlloc(&address, 1) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(address == 0);
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  CHECK(cuMemGetInfo(&free, &total) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuMemsetD8(kUntouched, 0, 1) == CUDA_ERROR_INVALID_CONTEXT);
  if (simulator()) CHECK(cuMemFree(kUntouched) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("an allocation of zero bytes, or without an output pointer, is an invalid value") {
  const CurrentContext context;
  CUdeviceptr address = kUntouched;
  CHECK(cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(address == 0);  // H100, H200, driver 580.159
  CHECK(cuMemAlloc(nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an allocation past the free memory is OUT_OF_MEMORY, and its address is 0", "[alone]") {
  const CurrentContext context;
  std::size_t total = 0;
  REQUIRE(cuMemGetInfo(nullptr, &total) == CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  CUdeviceptr address = kUntouched;
  std::size_t pitch = 77;
  for (const std::size_t bytes : {total + 1, SIZE_MAX, before + kMiB}) {
    address = kUntouched;
    CHECK(cuMemAlloc(&address, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(address == 0);  // H100, H200, driver 580.159
  }
  // H100, H200, driver 580.159: a pitch that overflows is 1; a size that does, 2, and the pitch is that of its rows.
  CHECK(cuMemAllocPitch(&address, &pitch, SIZE_MAX - 5, 2, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&address, &pitch, total, total, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(pitch == total);
  CHECK(free_bytes() == before);
}

TEST_CASE("a pitch that overflows is left as it was, and the address is 0") {
  if (!simulator()) return;  // not measured
  const CurrentContext context;
  CUdeviceptr address = kUntouched;
  std::size_t pitch = 77;
  CHECK(cuMemAllocPitch(&address, &pitch, SIZE_MAX - 5, 2, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(pitch == 77);
  CHECK(address == 0);
}

TEST_CASE("a device can be filled to the last block and is empty again after the frees", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  constexpr std::size_t kBlock = 256 * kMiB;
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr address = 0;
  CUresult last = CUDA_SUCCESS;
  while ((last = cuMemAlloc(&address, kBlock)) == CUDA_SUCCESS) blocks.push_back(address);
  CHECK(last == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(free_bytes() < kBlock);
  if (simulator()) CHECK(blocks.size() == before / kBlock);
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) REQUIRE(blocks[i] - blocks[i - 1] >= kBlock);
  for (const CUdeviceptr block : blocks) REQUIRE(cuMemFree(block) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("free memory falls by an allocation's cost and rises again by the same", "[alone]") {
  const CurrentContext context;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{511}, std::size_t{512}, std::size_t{513}, kMiB + 1, 5 * kMiB}) {
    const std::size_t before = free_bytes();
    const CUdeviceptr address = device_memory(bytes);
    CHECK(address % 256 == 0);
    if (simulator()) {
      CHECK(address % 512 == 0);
      CHECK(before - free_bytes() == (bytes + 511) / 512 * 512);
    }
    CHECK(cuMemFree(address) == CUDA_SUCCESS);
    CHECK(free_bytes() == before);
  }
}

TEST_CASE("all free memory can be allocated in one piece") {
  if (!simulator()) return;  // a real driver keeps spare granules
  const CurrentContext context;
  const std::size_t all = free_bytes();
  const CUdeviceptr address = device_memory(all);
  CHECK(free_bytes() == 0);
  CUdeviceptr more = kUntouched;
  CHECK(cuMemAlloc(&more, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
}

TEST_CASE("only the start of a live allocation can be freed, and only once") {
  const CurrentContext context;
  const CUdeviceptr address = device_memory(kMiB);
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  CHECK(cuMemFree(address + 256) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address + kMiB) == CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  CHECK(cuMemFree(reinterpret_cast<CUdeviceptr>(&local)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a pitched allocation has rows that are wide enough and aligned") {
  const CurrentContext context;
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  REQUIRE(cuMemAllocPitch(&address, &pitch, 1000, 30, 4) == CUDA_SUCCESS);
  CHECK(pitch >= 1000);
  CHECK(pitch % 32 == 0);
  CHECK(cuMemsetD8(address + 29 * pitch, 1, 1000) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemAllocPitch(&address, &pitch, 1000, 30, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&address, &pitch, 0, 30, 4) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("memory information accepts null for an output") {
  const CurrentContext context;
  std::size_t free = 0, total = 0, device_total = 0;
  CHECK(cuMemGetInfo(&free, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemGetInfo(nullptr, &total) == CUDA_SUCCESS);
  CHECK(cuMemGetInfo(nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(cuDeviceTotalMem(&device_total, 0) == CUDA_SUCCESS);
  CHECK(free < total);
  CHECK(total <= device_total);
}

TEST_CASE("freed memory does not overlap a neighbouring block that is written") {
  const CurrentContext context;
  const CUdeviceptr first = device_memory(kMiB), second = device_memory(kMiB);
  REQUIRE(cuMemsetD8(first, 1, kMiB) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(second, 2, kMiB) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(first) == CUDA_SUCCESS);
  const CUdeviceptr third = device_memory(kMiB / 2);
  REQUIRE(cuMemsetD8(third, 3, kMiB / 2) == CUDA_SUCCESS);
  CHECK(read_back(second, kMiB) == std::vector<unsigned char>(kMiB, 2));
}

TEST_CASE("device addresses are unique across devices") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  const CurrentContext first(0);
  const CUdeviceptr here = device_memory(4 * kMiB);
  const CurrentContext second(1);
  const CUdeviceptr there = device_memory(4 * kMiB);
  CHECK((here + 4 * kMiB <= there || there + 4 * kMiB <= here));
  int ordinal = -1;
  CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, here) == CUDA_SUCCESS);
  CHECK(ordinal == 0);
  CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there) == CUDA_SUCCESS);
  CHECK(ordinal == 1);
  CHECK(cuMemFree(here) == CUDA_SUCCESS);  // whichever context is current
}

}  // namespace
}  // namespace simcuda::conformance
