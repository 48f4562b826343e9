// Managed memory: one address for host and device, and the advice and prefetches that the driver records.
#include <cstring>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

constexpr std::size_t kPage = 4096;
constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 0};

CUdeviceptr managed_memory(std::size_t bytes, unsigned flags = CU_MEM_ATTACH_GLOBAL) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAllocManaged(&address, bytes, flags) == CUDA_SUCCESS);
  return address;
}

int range_attribute(CUmem_range_attribute which, CUdeviceptr address, std::size_t bytes) {
  int value = 77;
  REQUIRE(cuMemRangeGetAttribute(&value, sizeof value, which, address, bytes) == CUDA_SUCCESS);
  return value;
}

TEST_CASE("devices report that they share managed memory with the host") {
  start_driver();
  for (const CUdevice_attribute attribute :
       {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS}) {
    int supported = 0;
    REQUIRE(cuDeviceGetAttribute(&supported, attribute, 0) == CUDA_SUCCESS);
    CHECK(supported == 1);
  }
}

TEST_CASE("a managed allocation requires one of two flags and a nonzero size") {
  const CurrentContext context;
  CUdeviceptr address = 0x1234;
  for (const unsigned flags :
       {0u, unsigned{CU_MEM_ATTACH_SINGLE}, unsigned{CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST}}) {
    CHECK(cuMemAllocManaged(&address, kPage, flags) == CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocManaged(nullptr, kPage, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(address == 0);  // H100, H200, driver 580.159
  CHECK(cuMemFree(managed_memory(kPage, CU_MEM_ATTACH_HOST)) == CUDA_SUCCESS);
}

TEST_CASE("the host and the device see the same bytes of managed memory") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(kMiB);
  auto *const bytes = reinterpret_cast<unsigned char *>(address);
  std::memset(bytes, 3, kMiB);
  CHECK(read_back(address, kMiB) == std::vector<unsigned char>(kMiB, 3));
  REQUIRE(cuMemsetD8(address, 4, kMiB) == CUDA_SUCCESS);  // waits for a fill of managed memory
  CHECK(bytes[kMiB - 1] == 4);
  const CUdeviceptr block = device_memory(kMiB);
  REQUIRE(cuMemsetD8(block, 5, kMiB) == CUDA_SUCCESS);
  REQUIRE(cuMemcpyDtoD(address, block, kMiB) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(bytes[0] == 5);
  CHECK(cuMemcpyDtoD(address + 1, block, kMiB) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address + kPage) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the simulated device is charged the whole managed allocation at once") {
  if (!simulator()) return;  // a real one is charged when a page is used, and it evicts
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUdeviceptr address = managed_memory(kMiB + 1);
  CHECK(before - free_bytes() == kMiB + kPage);
  CUdeviceptr more = 0x1234;
  CHECK(cuMemAllocManaged(&more, before, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(more == 0);
  REQUIRE(cuMemPrefetchAsync(address, kMiB, kHost, 0, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(before - free_bytes() == kMiB + kPage);
  REQUIRE(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a managed pointer belongs to a device and is accessible to the host") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(1000), inside = address + 9;
  unsigned type = 0;
  int is_managed = 0;
  CUdeviceptr start = 0;
  void *host = nullptr;
  REQUIRE(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside) == CUDA_SUCCESS);
  CHECK(is_managed == 1);
  REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  REQUIRE(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside) == CUDA_SUCCESS);
  CHECK(reinterpret_cast<CUdeviceptr>(host) == inside);
  REQUIRE(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == CUDA_SUCCESS);
  CHECK(start == address);
  CUipcMemHandle handle = {};
  CHECK(cuIpcGetMemHandle(&handle, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
}

TEST_CASE("without advice the queries return the defaults") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(4 * kPage);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 4 * kPage) == 0);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 4 * kPage) == CU_DEVICE_INVALID);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, 4 * kPage) == CU_DEVICE_INVALID);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, 4 * kPage) == CU_DEVICE_INVALID);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, address, 1) == CU_MEM_LOCATION_TYPE_INVALID);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, address, 1) ==
        CU_MEM_LOCATION_TYPE_INVALID);
}

TEST_CASE("advice applies to its pages, and a query returns it only where all pages agree") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(4 * kPage);
  const CUdeviceptr second = address + kPage;
  REQUIRE(cuMemAdvise(second + 7, 1, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, second, kPage) == 1);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, second, kPage + 1) == 0);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, kPage) == 0);
  REQUIRE(cuMemAdvise(address, 4 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 4 * kPage) == 1);
  REQUIRE(cuMemAdvise(second, kPage, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 4 * kPage) == 0);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address + 2 * kPage, 2 * kPage) == 1);
}

TEST_CASE("a preferred location is returned by device number and by type, and cleared when it is unset") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(2 * kPage);
  REQUIRE(cuMemAdvise(address, 2 * kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 2 * kPage) == 0);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, address, kPage) == CU_MEM_LOCATION_TYPE_DEVICE);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, address, kPage) == 0);
  REQUIRE(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, kPage) == CU_DEVICE_CPU);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, address, kPage) == CU_MEM_LOCATION_TYPE_HOST);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 2 * kPage) == CU_DEVICE_INVALID);
  REQUIRE(cuMemAdvise(address, 2 * kPage, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kHost) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address + kPage, kPage) == CU_DEVICE_INVALID);
  CHECK(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99}) ==
        CUDA_ERROR_INVALID_VALUE);  // H100, H200, driver 580.159
  CHECK(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_INVALID, 0}) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the list of accessing devices is padded to its length") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(2 * kPage);
  REQUIRE(cuMemAdvise(address, 2 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice) == CUDA_SUCCESS);
  int list[3] = {7, 7, 7};
  REQUIRE(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, kPage) ==
          CUDA_SUCCESS);
  CHECK(list[0] == 0);
  CHECK(list[1] == CU_DEVICE_INVALID);
  CHECK(list[2] == CU_DEVICE_INVALID);
  REQUIRE(cuMemAdvise(address, kPage, CU_MEM_ADVISE_UNSET_ACCESSED_BY, kDevice) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, 2 * kPage) == CU_DEVICE_INVALID);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address + kPage, kPage) == 0);
  CHECK(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a query returns the last prefetch as soon as it was requested") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(2 * kPage);
  const CUstream stream = new_stream();
  {
    Gate gate;
    gate.hold(stream);
    REQUIRE(cuMemPrefetchAsync(address, 2 * kPage, kDevice, 0, stream) == CUDA_SUCCESS);
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, 2 * kPage) == 0);
  }
  REQUIRE(cuMemPrefetchAsync(address, kPage, kHost, 0, stream) == CUDA_SUCCESS);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, kPage) == CU_DEVICE_CPU);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, address, kPage) ==
        CU_MEM_LOCATION_TYPE_HOST);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, 2 * kPage) == CU_DEVICE_INVALID);
  CHECK(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, address + kPage, kPage) == 0);
  CHECK(cuMemPrefetchAsync(address, kPage, kHost, 1, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPrefetchAsync(address, kPage, {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, stream) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("advice, prefetches, attachments and queries are valid for managed memory only") {
  const CurrentContext context;
  const CUdeviceptr block = device_memory(kPage), address = managed_memory(kPage);
  for (const CUdeviceptr wrong : {block, address + 1}) {
    int value = 0;
    CHECK(cuMemAdvise(wrong, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemPrefetchAsync(wrong, kPage, kDevice, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, wrong, kPage) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamAttachMemAsync(nullptr, wrong, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("range attributes have four bytes each, and several can be queried at once") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(kPage);
  REQUIRE(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) == CUDA_SUCCESS);
  int read_mostly = 7, preferred = 7;
  void *values[] = {&read_mostly, &preferred};
  std::size_t sizes[] = {4, 4};
  CUmem_range_attribute queried[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  REQUIRE(cuMemRangeGetAttributes(values, sizes, queried, 2, address, kPage) == CUDA_SUCCESS);
  CHECK(read_mostly == 1);
  CHECK(preferred == CU_DEVICE_INVALID);
  CHECK(cuMemRangeGetAttributes(values, sizes, queried, 0, address, kPage) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemRangeGetAttribute(values, 8, queried[0], address, kPage) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemRangeGetAttribute(values, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, kPage) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("managed memory is attached as a whole") {
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(3 * kPage);
  const CUstream stream = new_stream();
  CHECK(cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE) == CUDA_SUCCESS);
  CHECK(cuStreamAttachMemAsync(stream, address, 3 * kPage, CU_MEM_ATTACH_HOST) == CUDA_SUCCESS);
  CHECK(cuStreamAttachMemAsync(stream, address, kPage, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuStreamAttachMemAsync(stream, address, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
}

TEST_CASE("managed memory is attached singly to no default stream") {
  if (!simulator()) return;  // cuda.h forbids it; with it in one case, driver 580.159 ended the process on both cards
  const CurrentContext context;
  const CUdeviceptr address = managed_memory(kPage);
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_PER_THREAD}) {
    CHECK(cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE) == CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace
}  // namespace simcuda::conformance
