// Shared by the tests of memory pools.
#pragma once
#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {

inline constexpr std::size_t kStep = 32 * kMiB;  // the growth step of the simulator's pools

inline CUmemPoolProps pool_props(CUdevice device = 0) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return props;
}

// A pool for one test; the destructor frees its blocks.
class Pool {
 public:
  explicit Pool(const CUmemPoolProps &props = pool_props()) {
    start_driver();
    REQUIRE(cuMemPoolCreate(&pool_, &props) == CUDA_SUCCESS);
  }
  ~Pool() {
    for (const CUdeviceptr block : blocks_) cuMemFree(block);  // most are already freed, so this call fails
    cuMemPoolDestroy(pool_);
  }
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;
  CUmemoryPool get() const { return pool_; }

  cuuint64_t bytes(CUmemPool_attribute attribute) const {
    cuuint64_t value = 0;
    REQUIRE(cuMemPoolGetAttribute(pool_, attribute, &value) == CUDA_SUCCESS);
    return value;
  }
  cuuint64_t reserved() const { return bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
  cuuint64_t used() const { return bytes(CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }
  void keep(cuuint64_t threshold) const {
    REQUIRE(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) == CUDA_SUCCESS);
  }
  void allow(CUmemPool_attribute attribute, bool allowed) const {
    int value = allowed ? 1 : 0;
    REQUIRE(cuMemPoolSetAttribute(pool_, attribute, &value) == CUDA_SUCCESS);
  }
  CUdeviceptr allocate(std::size_t size, CUstream stream) {
    CUdeviceptr address = 0;
    REQUIRE(cuMemAllocFromPoolAsync(&address, size, pool_, stream) == CUDA_SUCCESS);
    blocks_.push_back(address);
    return address;
  }

 private:
  CUmemoryPool pool_ = nullptr;
  std::vector<CUdeviceptr> blocks_;
};

}  // namespace simcuda::conformance
