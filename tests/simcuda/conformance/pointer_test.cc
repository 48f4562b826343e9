// Pointer attributes, and pinned host memory.
#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("an address range is the requested allocation, for any address in it") {
  const CurrentContext context;
  const CUdeviceptr address = device_memory(1000);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  REQUIRE(cuMemGetAddressRange(&base, &size, address + 999) == CUDA_SUCCESS);
  CHECK(base == address);
  if (simulator()) CHECK(size == 1000);
  CHECK(cuMemGetAddressRange(nullptr, &size, address) == CUDA_SUCCESS);
  CHECK(cuMemGetAddressRange(&base, nullptr, address) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemGetAddressRange(&base, &size, address) != CUDA_SUCCESS);
}

TEST_CASE("a device pointer has its context, kind, device and range") {
  const CurrentContext context;
  const CUdeviceptr address = device_memory(kMiB);
  CHECK(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, address) == context.get());
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 5) == CU_MEMORYTYPE_DEVICE);
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address + 5) == address + 5);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == 0);
  CHECK(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 5) == address);
  CHECK(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 5) == kMiB);
  CHECK(attribute<int>(CU_POINTER_ATTRIBUTE_MAPPED, address) == 1);
  void *host = nullptr;
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) == CUDA_ERROR_INVALID_VALUE);
}

void mark(CUdeviceptr address, unsigned value) {
  REQUIRE(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address) == CUDA_SUCCESS);
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address) == value);
}

TEST_CASE("SYNC_MEMOPS can be set on plain, stream-ordered and managed memory, and managed memory has it") {
  const CurrentContext context;
  CUdeviceptr pooled = 0, managed = 0;
  const CUdeviceptr plain = device_memory(kMiB);
  REQUIRE(cuMemAllocAsync(&pooled, kMiB, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocManaged(&managed, kMiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  for (const CUdeviceptr block : {plain, pooled, managed}) {
    CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block) == (block == managed ? 1u : 0u));
    mark(block + 5, 1);
    CHECK(cuMemFree(block) == CUDA_SUCCESS);
  }
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);  // the pool gives its memory back
}

TEST_CASE("a synchronous copy or fill has ended when it returns where SYNC_MEMOPS is set") {
  const CurrentContext context;
  const CUdeviceptr marked = device_memory(kMiB), other = device_memory(kMiB);
  mark(marked, 1);
  CUDA_MEMCPY2D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = other;
  box.dstDevice = marked;
  box.srcPitch = box.dstPitch = box.WidthInBytes = 1024;
  box.Height = 16;
  const auto ends = [](CUresult called) {
    CHECK(called == CUDA_SUCCESS);
    CHECK(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_SUCCESS);
  };
  ends(cuMemsetD8(marked, 1, kMiB));
  ends(cuMemsetD2D32(marked, 1024, 1, 16, 16));
  ends(cuMemcpyDtoD(marked, other, kMiB));
  ends(cuMemcpyDtoD(other, marked, kMiB));
  ends(cuMemcpy2D(&box));
}

TEST_CASE("two allocations never have the same buffer number, even at one address") {
  const CurrentContext context;
  const CUdeviceptr first = device_memory(kMiB);
  const auto number = attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first);
  REQUIRE(cuMemFree(first) == CUDA_SUCCESS);
  const CUdeviceptr second = device_memory(kMiB);
  CHECK(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second) != number);
}

TEST_CASE("the managed attribute has four bytes") {
  const CurrentContext context;
  const CUdeviceptr address = device_memory(kMiB);
  unsigned char bytes[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  REQUIRE(cuPointerGetAttribute(bytes, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS);
  CHECK(bytes[0] == 0);
  CHECK(bytes[4] == 9);
}

TEST_CASE("an unknown pointer is an error in a single query and yields nulls in a list") {
  const CurrentContext context;
  int local = 0;
  const auto pointer = reinterpret_cast<CUdeviceptr>(&local);
  unsigned type = 7;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_ERROR_INVALID_VALUE);
  CUcontext owner = context.get();
  int ordinal = 7;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&owner, &type, &ordinal};
  REQUIRE(cuPointerGetAttributes(3, attributes, values, pointer) == CUDA_SUCCESS);
  CHECK(owner == nullptr);
  CHECK(type == 0);
  CHECK(ordinal == CU_DEVICE_INVALID);
}

TEST_CASE("a list of attributes leaves the host pointer of device memory null") {
  const CurrentContext context;
  const CUdeviceptr address = device_memory(16);
  void *host = &host;
  unsigned type = 0;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void *values[] = {&host, &type};
  REQUIRE(cuPointerGetAttributes(2, attributes, values, address) == CUDA_SUCCESS);
  CHECK(host == nullptr);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
}

TEST_CASE("pinned host memory is its own device address, and costs no device memory") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  void *pinned = nullptr;
  REQUIRE(cuMemHostAlloc(&pinned, kMiB, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  REQUIRE(cuMemHostGetDevicePointer(&address, pinned, 0) == CUDA_SUCCESS);
  CHECK(address == reinterpret_cast<CUdeviceptr>(pinned));
  CHECK(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CU_MEMORYTYPE_HOST);
  unsigned flags = 0;
  REQUIRE(cuMemHostGetFlags(&flags, pinned) == CUDA_SUCCESS);
  CHECK((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0);
  if (simulator()) CHECK(free_bytes() == before);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
  CHECK(cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("host memory can be registered once and unregistered again") {
  const CurrentContext context;
  std::vector<unsigned char> memory(2 * kMiB);
  REQUIRE(cuMemHostRegister(memory.data(), memory.size(), 0) == CUDA_SUCCESS);
  CHECK(cuMemHostRegister(memory.data() + kMiB, 4096, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(cuMemFreeHost(memory.data()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemHostUnregister(memory.data()) == CUDA_SUCCESS);
  CHECK(cuMemHostUnregister(memory.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

}  // namespace
}  // namespace simcuda::conformance
