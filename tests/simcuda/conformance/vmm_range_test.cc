// Reserved addresses, mappings, and access to them.
#include "tests/simcuda/conformance/vmm.h"

namespace simcuda::conformance {
namespace {

constexpr CUmemAccess_flags kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE;
constexpr CUmemAccess_flags kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr CUmemAccess_flags kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

unsigned long long access_of(CUdeviceptr address, int device = 0) {
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, device};
  unsigned long long flags = 99;
  REQUIRE(cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS);
  return flags;
}

TEST_CASE("reserved addresses have the requested alignment and cost nothing", "[alone]") {
  const CurrentContext context;
  const std::size_t before = free_bytes();
  CUdeviceptr address = 0;
  REQUIRE(cuMemAddressReserve(&address, 64 * kGranule, 16 * kGranule, 0, 0) == CUDA_SUCCESS);
  CHECK(address % (16 * kGranule) == 0);
  CHECK(free_bytes() == before);
  CHECK(cuMemAddressFree(address + kGranule, 63 * kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(address, kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(address, 64 * kGranule) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(address, 64 * kGranule) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a reservation of partial pages, or with an invalid alignment or flags, is refused") {
  start_driver();
  CUdeviceptr address = 0x1234;
  CHECK(cuMemAddressReserve(&address, 0, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressReserve(&address, 1000, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressReserve(&address, kGranule, 3 * kGranule, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressReserve(&address, kGranule, 0, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(address == 0x1234);
}

// A reserved range with `bytes` mapped from `offset` on, past its end: over the simulator only where the addresses
// after it are nobody's.
CUdeviceptr mapped_past_the_end(std::size_t reserved_bytes, std::size_t offset, std::size_t bytes,
                                CUmemGenericAllocationHandle handle) {
  CUresult result = CUDA_ERROR_UNKNOWN;
  for (int attempt = 0; attempt < 64; ++attempt) {
    const CUdeviceptr range = reserved(reserved_bytes);
    result = cuMemMap(range + offset, bytes, 0, handle, 0);
    if (result == CUDA_SUCCESS) return range;
  }
  REQUIRE(result == CUDA_SUCCESS);
  return 0;
}

TEST_CASE("only a whole handle can be mapped, from a reserved address on, where nothing is mapped") {
  start_driver();
  const CUmemGenericAllocationHandle handle = physical(2 * kGranule);
  // H200, driver 580.159: parts are 801; a mapping may end after the reserved range
  const CUdeviceptr range = mapped_past_the_end(4 * kGranule, 3 * kGranule, 2 * kGranule, handle);
  CHECK(cuMemMap(range, 3 * kGranule, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(range, kGranule, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(range, kGranule, kGranule, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(range, kGranule / 2, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(range + 4096, kGranule, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemMap(range + kMiB, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemMap(range, kGranule, 0, handle, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemMap(range + kGranule, 2 * kGranule, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(range, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemMap(range + 2 * kGranule, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(range, 4 * kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(range + kGranule, kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(range, 3 * kGranule) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(range, 4 * kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(range + 3 * kGranule, 2 * kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  if (simulator()) CHECK(cuMemMap(range, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(range, 4 * kGranule) == CUDA_SUCCESS);
}

TEST_CASE("what is mapped past the end of a reserved range has bytes, and does not outlast the range") {
  if (!simulator()) return;  // not measured
  const CurrentContext context;
  const CUmemGenericAllocationHandle handle = physical(2 * kGranule);
  const CUdeviceptr range = mapped_past_the_end(kGranule, 0, 2 * kGranule, handle);
  for (int turn = 0; turn < 2; ++turn) {
    if (turn > 0) REQUIRE(cuMemMap(range, 2 * kGranule, 0, handle, 0) == CUDA_SUCCESS);
    REQUIRE(allow(range, 2 * kGranule, kReadWrite) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD8(range, 7, 2 * kGranule) == CUDA_SUCCESS);
    CHECK(read_back(range + 2 * kGranule - 16, 16) == std::vector<unsigned char>(16, 7));
    CHECK(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, range) == kGranule);
    REQUIRE(cuMemUnmap(range, 2 * kGranule) == CUDA_SUCCESS);
  }
  const CUmemGenericAllocationHandle large = physical(128 * kMiB);
  CHECK(cuMemMap(range, 128 * kMiB, 0, large, 0) == CUDA_ERROR_INVALID_VALUE);  // too far for the simulator
  CHECK(cuMemRelease(large) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  REQUIRE(cuMemAddressFree(range, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemUnmap(range + kGranule, kGranule) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("one call unmaps every mapping in its range, with or without holes, but no part of one") {
  start_driver();
  const CUmemGenericAllocationHandle wide = physical(2 * kGranule), narrow = physical(kGranule);
  const CUdeviceptr range = reserved(5 * kGranule);
  REQUIRE(cuMemMap(range, 2 * kGranule, 0, wide, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range + 2 * kGranule, kGranule, 0, narrow, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range + 4 * kGranule, kGranule, 0, narrow, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemRelease(wide) == CUDA_SUCCESS);
  // H100, H200, driver 580.159
  CHECK(cuMemUnmap(range + kGranule, 2 * kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(range, kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(range, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemUnmap(range, 5 * kGranule) == CUDA_SUCCESS);
  CHECK(cuMemUnmap(range, 3 * kGranule) == CUDA_SUCCESS);  // where nothing is mapped
  // `wide` was freed with its mapping
  if (simulator()) CHECK(cuMemMap(range, 2 * kGranule, 0, wide, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemMap(range, kGranule, 0, narrow, 0) == CUDA_SUCCESS);
  CHECK(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(narrow) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(range, 5 * kGranule) == CUDA_SUCCESS);
}

TEST_CASE("a new mapping is inaccessible until access is granted") {
  const CurrentContext context;
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  const CUdeviceptr range = reserved(kGranule);
  REQUIRE(cuMemMap(range, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  unsigned char byte = 0;
  CHECK(access_of(range) == kNone);
  CHECK(cuMemsetD8(range, 1, 1) != CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(&byte, range, 1) != CUDA_SUCCESS);
  CHECK(cuMemcpy(reinterpret_cast<CUdeviceptr>(&byte), range, 1) != CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, kReadWrite) == CUDA_SUCCESS);
  CHECK(access_of(range + 5) == kReadWrite);
  REQUIRE(cuMemsetD8(range, 5, 1) == CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, kRead) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(&byte, range, 1) == CUDA_SUCCESS);
  CHECK(byte == 5);
  if (simulator()) CHECK(cuMemsetD8(range, 1, 1) != CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, kNone) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(&byte, range, 1) != CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, kReadWrite) == CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(range, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(access_of(range) == kNone);
  CHECK(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(range, kGranule) == CUDA_SUCCESS);
}

TEST_CASE("access is set for whole mappings, all of them or none") {
  start_driver();
  const MappedRange two(2);
  const CUdeviceptr address = two.address();
  CHECK(allow(address, kGranule / 2, kNone) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allow(address, 3 * kGranule, kNone) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allow(address, kGranule, kNone, 99) == CUDA_ERROR_INVALID_VALUE);  // H100, driver 580.159
  CHECK(cuMemSetAccess(address, kGranule, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  const CUmemAccessDesc both[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, kNone},
                                  {{CU_MEM_LOCATION_TYPE_DEVICE, 99}, kNone}};
  CHECK(cuMemSetAccess(address, kGranule, both, 2) == CUDA_ERROR_INVALID_VALUE);  // H100, driver 580.159
  CHECK(access_of(address) == kReadWrite);
  REQUIRE(allow(address + kGranule, kGranule, kNone) == CUDA_SUCCESS);
  CHECK(access_of(address) == kReadWrite);
  CHECK(access_of(address + kGranule) == kNone);
}

TEST_CASE("each device is granted access to a mapping separately") {
  start_driver();
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  const MappedRange range;
  CHECK(access_of(range.address(), 1) == kNone);
  const CurrentContext other(1);
  if (simulator()) CHECK(cuMemsetD8(range.address(), 1, 1) != CUDA_SUCCESS);
  REQUIRE(allow(range.address(), kGranule, kReadWrite, 1) == CUDA_SUCCESS);
  CHECK(cuMemsetD8(range.address(), 1, 1) == CUDA_SUCCESS);
  CHECK(access_of(range.address(), 0) == kReadWrite);
}

TEST_CASE("copies and fills cross from one mapping into the next, but not past the last") {
  const CurrentContext context;
  const MappedRange range(3);
  const CUdeviceptr middle = range.address() + kGranule - 1000;
  const std::vector<unsigned char> values = counting(kGranule + 2000);
  REQUIRE(cuMemcpyHtoD(middle, values.data(), values.size()) == CUDA_SUCCESS);
  CHECK(read_back(middle, values.size()) == values);
  REQUIRE(cuMemsetD32(range.address(), 0x01020304, range.bytes() / 4) == CUDA_SUCCESS);
  const CUdeviceptr block = device_memory(range.bytes());
  REQUIRE(cuMemcpyDtoD(block, range.address(), range.bytes()) == CUDA_SUCCESS);
  CHECK(read_back(block + range.bytes() - 4, 4) == std::vector<unsigned char>{4, 3, 2, 1});
  CHECK(cuMemsetD8(range.address() + 1, 0, range.bytes()) != CUDA_SUCCESS);
}

TEST_CASE("memory mapped twice has the same bytes at both addresses, and keeps them while unmapped") {
  const CurrentContext context;
  const CUmemGenericAllocationHandle handle = physical(kGranule);
  const CUdeviceptr first = reserved(kGranule), second = reserved(kGranule);
  for (const CUdeviceptr place : {first, second}) {
    REQUIRE(cuMemMap(place, kGranule, 0, handle, 0) == CUDA_SUCCESS);
    REQUIRE(allow(place, kGranule, kReadWrite) == CUDA_SUCCESS);
  }
  REQUIRE(cuMemsetD8(first, 3, kGranule) == CUDA_SUCCESS);
  CHECK(read_back(second + 77, 100) == std::vector<unsigned char>(100, 3));
  for (const CUdeviceptr place : {first, second}) REQUIRE(cuMemUnmap(place, kGranule) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(first, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(allow(first, kGranule, kReadWrite) == CUDA_SUCCESS);
  CHECK(read_back(first, 100) == std::vector<unsigned char>(100, 3));
  REQUIRE(cuMemUnmap(first, kGranule) == CUDA_SUCCESS);
  CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
  for (const CUdeviceptr place : {first, second}) CHECK(cuMemAddressFree(place, kGranule) == CUDA_SUCCESS);
}

TEST_CASE("late work whose mapping is gone changes no memory") {
  if (!simulator()) return;  // a fault of a real device may end all contexts of the process
  const CurrentContext context;
  const CUmemGenericAllocationHandle handle = physical(kGranule), other = physical(kGranule);
  const CUdeviceptr range = reserved(kGranule);
  REQUIRE(cuMemMap(range, kGranule, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(allow(range, kGranule, kReadWrite) == CUDA_SUCCESS);
  REQUIRE(cuMemsetD8(range, 1, kGranule) == CUDA_SUCCESS);
  const CUstream stream = new_stream();
  {
    Gate gate;
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    gate.hold(stream);
    REQUIRE(cuMemsetD8Async(range, 2, kGranule, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
  }
  REQUIRE(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  const CurrentContext sound;
  for (const CUmemGenericAllocationHandle each : {handle, other}) {
    REQUIRE(cuMemMap(range, kGranule, 0, each, 0) == CUDA_SUCCESS);
    REQUIRE(allow(range, kGranule, kReadWrite) == CUDA_SUCCESS);
    CHECK(read_back(range, kGranule) == std::vector<unsigned char>(kGranule, each == handle ? 1 : 0));
    REQUIRE(cuMemUnmap(range, kGranule) == CUDA_SUCCESS);
    CHECK(cuMemRelease(each) == CUDA_SUCCESS);
  }
  CHECK(cuMemAddressFree(range, kGranule) == CUDA_SUCCESS);
}

TEST_CASE("the host can be granted access to host memory, at the device's address") {
  const CurrentContext context;
  const MappedRange range(1, properties_of(CU_MEM_LOCATION_TYPE_HOST));
  const CUmemAccessDesc host{{CU_MEM_LOCATION_TYPE_HOST, 0}, kReadWrite};
  REQUIRE(cuMemSetAccess(range.address(), kGranule, &host, 1) == CUDA_SUCCESS);
  auto *const bytes = reinterpret_cast<unsigned char *>(range.address());
  REQUIRE(cuMemsetD8(range.address(), 6, kGranule) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(bytes[kGranule - 1] == 6);
  bytes[0] = 7;
  CHECK(read_back(range.address(), 2) == std::vector<unsigned char>{7, 6});
  const MappedRange device;
  if (simulator()) CHECK(cuMemSetAccess(device.address(), kGranule, &host, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("cuMemFree cannot free mapped memory, which outlives every context") {
  const CurrentContext staying;
  CUcontext going = nullptr;
  REQUIRE(cuCtxCreate(&going, nullptr, 0, 0) == CUDA_SUCCESS);
  const MappedRange range;
  CHECK(cuMemFree(range.address()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(range.address(), nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemsetD8(range.address(), 8, 16) == CUDA_SUCCESS);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuCtxDestroy(going) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(staying.get()) == CUDA_SUCCESS);
  CHECK(read_back(range.address(), 16) == std::vector<unsigned char>(16, 8));
}

}  // namespace
}  // namespace simcuda::conformance
