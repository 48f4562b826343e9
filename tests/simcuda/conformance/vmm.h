// Shared by the tests of virtual memory management: the usual properties, and a mapping for one test.
#pragma once
#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {

inline constexpr std::size_t kGranule = 2 * kMiB;  // the simulator's; a real device's may differ

inline CUmemAllocationProp properties_of(CUmemLocationType type, int id = 0,
                                         CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {type, id};
  properties.requestedHandleTypes = types;
  return properties;
}

inline CUmemAllocationProp on_device(int device = 0, CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE) {
  return properties_of(CU_MEM_LOCATION_TYPE_DEVICE, device, types);
}

inline CUmemGenericAllocationHandle physical(std::size_t bytes, const CUmemAllocationProp &properties = on_device()) {
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(cuMemCreate(&handle, bytes, &properties, 0) == CUDA_SUCCESS);
  return handle;
}

inline CUdeviceptr reserved(std::size_t bytes) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS);
  return address;
}

inline CUresult allow(CUdeviceptr address, std::size_t bytes, CUmemAccess_flags flags, int device = 0) {
  const CUmemAccessDesc wanted{{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
  return cuMemSetAccess(address, bytes, &wanted, 1);
}

// Granules of physical memory in a separate reserved range, accessible to device 0; all released at the end.
class MappedRange {
 public:
  explicit MappedRange(std::size_t granules = 1, const CUmemAllocationProp &properties = on_device())
      : granules_(granules), address_(reserved(granules * kGranule)) {
    for (std::size_t i = 0; i < granules; ++i) {
      const CUmemGenericAllocationHandle handle = physical(kGranule, properties);
      REQUIRE(cuMemMap(address_ + i * kGranule, kGranule, 0, handle, 0) == CUDA_SUCCESS);
      REQUIRE(cuMemRelease(handle) == CUDA_SUCCESS);
    }
    REQUIRE(allow(address_, bytes(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  }
  ~MappedRange() {
    for (std::size_t i = 0; i < granules_; ++i) cuMemUnmap(address_ + i * kGranule, kGranule);
    cuMemAddressFree(address_, bytes());
  }
  MappedRange(const MappedRange &) = delete;
  MappedRange &operator=(const MappedRange &) = delete;
  CUdeviceptr address() const { return address_; }
  std::size_t bytes() const { return granules_ * kGranule; }

 private:
  std::size_t granules_;
  CUdeviceptr address_;
};

}  // namespace simcuda::conformance
