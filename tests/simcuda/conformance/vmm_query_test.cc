// Queries of addresses of virtual memory management.
#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("the range of a mapped address is its reservation, its mapping the mapped block") {
  const CurrentContext context;
  const MappedRange range(3);
  const CUdeviceptr second = range.address() + kGranule, inside = second + 99;
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == range.address());
  CHECK(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside) == 3 * kGranule);
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, inside) == second);
  CHECK(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, inside) == kGranule);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  REQUIRE(cuMemGetAddressRange(&base, &size, inside) == CUDA_SUCCESS);
  CHECK(base == second);
  CHECK(size == kGranule);
}

TEST_CASE("a mapped address belongs to a device and to no context, and has no legacy IPC handle") {
  const CurrentContext context;
  const MappedRange range(1, on_device(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const CUdeviceptr address = range.address();
  CHECK(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, address) == nullptr);
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CU_MEMORYTYPE_DEVICE);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == 0);
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address + 5) == address + 5);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_MAPPED, address) == 1);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address) == 0);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == 0);
  CHECK(attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address) ==
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUipcMemHandle handle = {};
  CHECK(cuIpcGetMemHandle(&handle, address) == CUDA_ERROR_INVALID_VALUE);
  void *host = nullptr;
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) == CUDA_ERROR_INVALID_VALUE);
}

// H100, H200, driver 580.159: 801.
TEST_CASE("SYNC_MEMOPS cannot be set on mapped memory, and is not set there") {
  const CurrentContext context;
  const MappedRange range;
  const unsigned on = 1;
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, range.address()) == 0);
  CHECK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, range.address()) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, range.address()) == 0);
  const CUdeviceptr nothing = reserved(kGranule);
  CHECK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, nothing) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(nothing, kGranule) == CUDA_SUCCESS);
}

TEST_CASE("the reported access is the current device's") {
  const CurrentContext context;
  const MappedRange range;
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, range.address()) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  REQUIRE(allow(range.address(), kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, range.address()) == CU_MEM_ACCESS_FLAGS_PROT_READ);
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  const CurrentContext other(1);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, range.address()) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_CASE("two mappings of the same memory are two buffers and one block") {
  const CurrentContext context;
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  const CUdeviceptr range = reserved(2 * kGranule);
  for (const CUdeviceptr place : {range, range + kGranule}) {
    REQUIRE(cuMemMap(place, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  }
  const auto id = [](CUpointer_attribute which, CUdeviceptr at) { return attribute<unsigned long long>(which, at); };
  CHECK(id(CU_POINTER_ATTRIBUTE_BUFFER_ID, range) != id(CU_POINTER_ATTRIBUTE_BUFFER_ID, range + kGranule));
  CHECK(id(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, range) == id(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, range + kGranule));
  for (const CUdeviceptr place : {range, range + kGranule}) REQUIRE(cuMemUnmap(place, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(range, 2 * kGranule) == CUDA_SUCCESS);
}

TEST_CASE("an address that is only reserved has no attributes") {
  const CurrentContext context;
  const CUdeviceptr range = reserved(2 * kGranule);
  std::uint64_t value = 0;
  for (const auto which : {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MAPPED,
                           CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE}) {
    INFO(which);
    CHECK(cuPointerGetAttribute(&value, which, range) == CUDA_ERROR_INVALID_VALUE);  // H100, H200, driver 580.159
  }
  CHECK(cuMemGetAddressRange(nullptr, nullptr, range) == CUDA_ERROR_NOT_FOUND);
  unsigned char byte = 0;
  CHECK(cuMemcpy(reinterpret_cast<CUdeviceptr>(&byte), range, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(range, 2 * kGranule) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace simcuda::conformance
