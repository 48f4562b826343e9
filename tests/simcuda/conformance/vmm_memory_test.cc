// Physical memory of virtual memory management: cost, lifetime, and sharing.
#include <unistd.h>

#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

CUresult create(std::size_t bytes, const CUmemAllocationProp &properties) {
  CUmemGenericAllocationHandle handle = kUntouched;
  const CUresult result = cuMemCreate(&handle, bytes, &properties, 0);
  CHECK((result == CUDA_SUCCESS) == (handle != kUntouched));
  return result;
}

std::size_t free_of(int device) {
  const CurrentContext context(device);
  return free_bytes();
}

TEST_CASE("devices report that they support virtual memory management") {
  start_driver();
  for (const CUdevice_attribute attribute : {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                             CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED}) {
    int supported = 0;
    REQUIRE(cuDeviceGetAttribute(&supported, attribute, 0) == CUDA_SUCCESS);
    CHECK(supported == 1);
  }
}

TEST_CASE("physical memory is allocated in whole granules, without any context") {
  start_driver();
  const CUmemAllocationProp properties = on_device();
  std::size_t least = 0, recommended = 0;
  REQUIRE(cuMemGetAllocationGranularity(&least, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS);
  REQUIRE(cuMemGetAllocationGranularity(&recommended, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) ==
          CUDA_SUCCESS);
  CHECK(recommended % least == 0);
  if (simulator()) CHECK(least == kGranule);
  CHECK(cuMemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(create(0, properties) == CUDA_ERROR_INVALID_VALUE);
  CHECK(create(least / 2, properties) == CUDA_ERROR_INVALID_VALUE);
  CHECK(create(least + 1, properties) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemRelease(physical(least)) == CUDA_SUCCESS);
}

TEST_CASE("invalid properties are refused") {
  start_driver();
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = on_device();
  CHECK(cuMemCreate(nullptr, kGranule, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemCreate(&handle, kGranule, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemCreate(&handle, kGranule, &properties, 1) == CUDA_ERROR_INVALID_VALUE);
  properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  CHECK(create(kGranule, properties) == CUDA_ERROR_INVALID_VALUE);
  CHECK(create(kGranule, on_device(99)) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(create(kGranule, properties_of(CU_MEM_LOCATION_TYPE_INVALID)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(create(kGranule, properties_of(CU_MEM_LOCATION_TYPE_HOST, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("physical memory is charged to the device of its location, and host memory to none", "[alone]") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  const CurrentContext context(0);
  const int last = count - 1;
  const std::size_t before = free_of(last), before_here = free_bytes();
  const CUmemGenericAllocationHandle handle = physical(3 * kGranule, on_device(last));
  CHECK(before - free_of(last) == 3 * kGranule);
  if (last != 0) CHECK(free_bytes() == before_here);
  const CUmemGenericAllocationHandle host = physical(kGranule, properties_of(CU_MEM_LOCATION_TYPE_HOST));
  const CUmemGenericAllocationHandle node = physical(kGranule, properties_of(CU_MEM_LOCATION_TYPE_HOST_NUMA));
  CHECK(before - free_of(last) == 3 * kGranule);
  if (simulator()) {
    simcuda_books books = {};
    REQUIRE(simulator().device_books(last, &books) == 0);
    CHECK(books.physical == 1);
    CHECK(books.physical_bytes == 3 * kGranule);
  }
  for (const CUmemGenericAllocationHandle each : {handle, host, node}) CHECK(cuMemRelease(each) == CUDA_SUCCESS);
  CHECK(free_of(last) == before);
}

TEST_CASE("physical memory past the device's size is OUT_OF_MEMORY", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const std::size_t most = before / kGranule * kGranule;
  CHECK(create(most + kGranule, on_device()) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(create(std::size_t{1} << 60, on_device()) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(free_bytes() == before);
  if (!simulator()) return;  // a real driver keeps spare granules
  const CUmemGenericAllocationHandle all = physical(most);
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, kGranule) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemRelease(all) == CUDA_SUCCESS);
}

TEST_CASE("physical memory is freed with the last reference or the last mapping, whichever is later", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  const CUdeviceptr address = reserved(kGranule);
  REQUIRE(cuMemMap(address, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  REQUIRE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(address + 5)) == CUDA_SUCCESS);
  CHECK(again == handle);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(before - free_bytes() == kGranule);
  if (simulator()) CHECK(cuMemRelease(handle) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(address)) == CUDA_SUCCESS);
  CHECK(again == handle);
  CHECK(cuMemUnmap(address, kGranule) == CUDA_SUCCESS);
  CHECK(before - free_bytes() == kGranule);
  CHECK(cuMemRelease(again) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CHECK(cuMemAddressFree(address, kGranule) == CUDA_SUCCESS);
}

TEST_CASE("only mapped memory of cuMemCreate has a handle to retain") {
  const CurrentContext context;
  CUmemGenericAllocationHandle handle = kUntouched;
  const CUdeviceptr block = device_memory(kGranule), range = reserved(kGranule);
  CHECK(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(block)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(range)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemRetainAllocationHandle(&handle, &handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(handle == kUntouched);
  CHECK(cuMemAddressFree(range, kGranule) == CUDA_SUCCESS);
}

TEST_CASE("a handle returns its creation properties") {
  start_driver();
  const CUmemGenericAllocationHandle handle =
      physical(kGranule, on_device(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CUmemAllocationProp reported = {};
  REQUIRE(cuMemGetAllocationPropertiesFromHandle(&reported, handle) == CUDA_SUCCESS);
  CHECK(reported.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  CHECK(reported.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  CHECK(reported.location.id == 0);
  CHECK(reported.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
}

TEST_CASE("memory can be exported as a file descriptor only if requested at creation") {
  start_driver();
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  int descriptor = -5;
  CHECK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(descriptor == -5);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle none = kUntouched;
  void *const no_memory = reinterpret_cast<void *>(std::intptr_t{STDERR_FILENO});
  CHECK(cuMemImportFromShareableHandle(&none, no_memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
  CHECK(none == kUntouched);
}

TEST_CASE("memory that may be exported costs no descriptor while it is not") {
  const CurrentContext context;
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(::close(before) == 0);
  std::vector<CUmemGenericAllocationHandle> handles;
  for (int i = 0; i < 20; ++i) {
    handles.push_back(physical(kGranule, on_device(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)));
  }
  const int after = ::dup(STDERR_FILENO);
  CHECK(::close(after) == 0);
  CHECK(after <= before + 1);  // the first of all may cost one
  for (const CUmemGenericAllocationHandle handle : handles) CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
}

TEST_CASE("an imported handle is the exporter's memory and costs nothing more", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  const CUmemGenericAllocationHandle handle =
      physical(kGranule, on_device(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  int descriptor = -1;
  REQUIRE(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
          CUDA_SUCCESS);
  CUmemGenericAllocationHandle imported = 0;
  REQUIRE(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void *>(std::intptr_t{descriptor}),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS);
  CHECK(::close(descriptor) == 0);
  CHECK(before - free_bytes() == kGranule);
  const CUdeviceptr range = reserved(2 * kGranule);
  REQUIRE(cuMemMap(range, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range + kGranule, kGranule, 0, imported, 0) == CUDA_SUCCESS);
  REQUIRE(allow(range, 2 * kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(range, 7, kGranule) == CUDA_SUCCESS);
  CHECK(read_back(range + kGranule, kGranule) == std::vector<unsigned char>(kGranule, 7));
  CHECK(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(before - free_bytes() == kGranule);
  CHECK(cuMemUnmap(range + kGranule, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(imported) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CHECK(cuMemAddressFree(range, 2 * kGranule) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
