#include "policy/driver_pools/default_pools.h"

#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

// Copies the attributes that the program may have set already.
void copy_settings(CUmemoryPool from, CUmemoryPool to) {
  for (const CUmemPool_attribute which :
       {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD}) {
    cuuint64_t value = 0;  // at least as wide as each attribute
    if (real.cuMemPoolGetAttribute(from, which, &value) == CUDA_SUCCESS) {
      real.cuMemPoolSetAttribute(to, which, &value);
    }
  }
}

bool has_functions() {
  return real.cuDeviceGetDefaultMemPool.present() && real.cuMemPoolCreate.present() &&
         real.cuMemPoolGetAttribute.present() && real.cuMemPoolSetAttribute.present() &&
         real.cuMemAllocFromPoolAsync.present() && StreamPools::have_caps();
}

}  // namespace

CUmemoryPool DefaultPools::behind(CUmemoryPool handle) noexcept {
  const std::vector<Device> *devices = handle != nullptr ? devices_.all() : nullptr;
  if (devices == nullptr) {
    return handle;
  }
  for (const Device &device : *devices) {
    Pair &pair = pairs_[device.ordinal];
    if (!pair.known.load(std::memory_order_acquire)) {
      learn(pair, device);
    }
    if (pair.original.load(std::memory_order_relaxed) == handle) {
      const CUmemoryPool stand_in = pair.stand_in.load(std::memory_order_relaxed);
      return stand_in != nullptr ? stand_in : handle;
    }
  }
  return handle;
}

CUmemoryPool DefaultPools::shown(CUmemoryPool handle) const noexcept {
  for (const Pair &pair : pairs_) {
    if (handle != nullptr && pair.known.load(std::memory_order_acquire) &&
        pair.stand_in.load(std::memory_order_relaxed) == handle) {
      return pair.original.load(std::memory_order_relaxed);
    }
  }
  return handle;
}

void DefaultPools::learn(Pair &pair, const Device &device) noexcept {
  const ReentrantGate turn(making_);
  if (pair.known.load(std::memory_order_relaxed) || turn.is_nested()) {
    return;
  }
  const RelaxedCapture relaxed;
  CUmemoryPool original = nullptr;
  if (has_functions() && real.cuDeviceGetDefaultMemPool(&original, device.handle) == CUDA_SUCCESS) {
    pair.original.store(original, std::memory_order_relaxed);
    pair.stand_in.store(make(original, device), std::memory_order_relaxed);
  }
  pair.known.store(true, std::memory_order_release);
}

CUmemoryPool DefaultPools::make(CUmemoryPool original, const Device &device) noexcept {
  const std::uint64_t most = ledger_.account(device.ordinal).cap();
  if (original == nullptr || most == UINT64_MAX || StreamPools::cap_within(most) == 0 ||
      DriverPool(original, device.ordinal).reserved() != 0) {
    return nullptr;
  }
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
  props.maxSize = StreamPools::cap_within(most);
  CUmemoryPool made = nullptr;
  if (real.cuMemPoolCreate(&made, &props) != CUDA_SUCCESS) {
    return nullptr;
  }
  copy_settings(original, made);
  stream_pools_.created(made, props);
  return made;
}

}  // namespace ration::policy
