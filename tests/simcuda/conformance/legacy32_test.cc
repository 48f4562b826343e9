// The 32-bit exports of CUDA 2.0, which no current program links.
#define __CUDA_API_VERSION_INTERNAL  // their names have no suffix
#include <climits>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("a 32-bit allocation lies below 4 GiB, stores bytes and is freed") {
  if (!simulator()) return;
  const CurrentContext context;
  const std::size_t before = free_bytes();
  CUdeviceptr_v1 address = 0;
  REQUIRE(cuMemAlloc(&address, 1000) == CUDA_SUCCESS);
  CHECK(address != 0);
  CHECK(before - free_bytes() == 1024);
  CHECK(cuMemsetD8_v2(address, 9, 1000) == CUDA_SUCCESS);
  CHECK(read_back(address, 1000) == std::vector<unsigned char>(1000, 9));
  CUdeviceptr_v1 base = 0;
  unsigned size = 0;
  CHECK(cuMemGetAddressRange(&base, &size, address + 10) == CUDA_SUCCESS);
  CHECK((base == address && size == 1000));
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(free_bytes() == before);
  CHECK(cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a 32-bit pitched allocation has aligned rows") {
  if (!simulator()) return;
  const CurrentContext context;
  const std::size_t before = free_bytes();
  CUdeviceptr_v1 address = 0;
  unsigned pitch = 0;
  REQUIRE(cuMemAllocPitch(&address, &pitch, 1000, 30, 4) == CUDA_SUCCESS);
  CHECK(pitch == 1024);
  CHECK(before - free_bytes() == std::size_t{30} * 1024);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemAllocPitch(&address, &pitch, 1000, 30, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&address, nullptr, 1000, 30, 4) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("addresses below 4 GiB run out before the device's memory does") {
  if (!simulator()) return;
  const CurrentContext context;
  CUdeviceptr_v1 address = 77;
  CHECK(cuMemAlloc(&address, UINT_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(address == 0);
}

TEST_CASE("a size that does not fit 32 bits is reported as the largest that does") {
  if (!simulator()) return;
  const CurrentContext context;
  std::size_t all = 0;
  REQUIRE(cuDeviceTotalMem_v2(&all, 0) == CUDA_SUCCESS);
  REQUIRE(all > UINT_MAX);
  unsigned free = 0, total = 0, device = 0;
  CHECK(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  CHECK(total == UINT_MAX);
  CHECK(free == UINT_MAX);
  CHECK(cuMemGetInfo(nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(cuDeviceTotalMem(&device, 0) == CUDA_SUCCESS);
  CHECK(device == UINT_MAX);
  CHECK(cuDeviceTotalMem(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("arrays and pinned memory work under the old names, too") {
  if (!simulator()) return;
  const CurrentContext context;
  CUarray flat = nullptr, deep = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v1 flat_shape = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR_v1 deep_shape = {64, 32, 16, CU_AD_FORMAT_HALF, 2, 0};
  const std::size_t before = free_bytes();
  REQUIRE(cuArrayCreate(&flat, &flat_shape) == CUDA_SUCCESS);
  CHECK(before - free_bytes() == 4 * kMiB);
  REQUIRE(cuArray3DCreate(&deep, &deep_shape) == CUDA_SUCCESS);
  CUDA_ARRAY_DESCRIPTOR_v1 flat_reported = {};
  CUDA_ARRAY3D_DESCRIPTOR_v1 deep_reported = {};
  CHECK(cuArrayGetDescriptor(&flat_reported, flat) == CUDA_SUCCESS);
  CHECK((flat_reported.Width == 1024 && flat_reported.Height == 1024));
  CHECK(cuArray3DGetDescriptor(&deep_reported, deep) == CUDA_SUCCESS);
  CHECK((deep_reported.Width == 64 && deep_reported.Height == 32 && deep_reported.Depth == 16 &&
         deep_reported.NumChannels == 2));
  CHECK(cuArrayDestroy(flat) == CUDA_SUCCESS);
  CHECK(cuArrayDestroy(deep) == CUDA_SUCCESS);
  CHECK(cuArrayCreate(&flat, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArray3DCreate(&deep, nullptr) == CUDA_ERROR_INVALID_VALUE);
  void *pinned = nullptr;
  REQUIRE(cuMemAllocHost(&pinned, 1000) == CUDA_SUCCESS);
  static_cast<char *>(pinned)[999] = 1;
  CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
