#include "policy/driver_pools/driver_pool.h"

#include "base/saturating.h"
#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

std::optional<std::uint64_t> attribute(const DriverPool &pool, CUmemPool_attribute of_pool,
                                       CUgraphMem_attribute of_graphs) {
  const RelaxedCapture relaxed;  // outside relaxed mode this query breaks a global capture (an H200, driver 580)
  cuuint64_t value = 0;
  bool known = false;
  if (pool.graphs != nullptr) {
    known = real.cuDeviceGetGraphMemAttribute.present() &&
            real.cuDeviceGetGraphMemAttribute(pool.graphs->device, of_graphs, &value) == CUDA_SUCCESS;
  } else {
    known = real.cuMemPoolGetAttribute.present() &&
            real.cuMemPoolGetAttribute(pool.handle, of_pool, &value) == CUDA_SUCCESS;
  }
  return known ? std::optional<std::uint64_t>(value) : std::nullopt;
}

std::optional<std::uint64_t> used(const DriverPool &pool) {
  return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
}

}  // namespace

std::optional<std::uint64_t> DriverPool::reserved() const {
  return attribute(*this, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
}

std::uint64_t DriverPool::used_bytes() const {
  return used(*this).value_or(UINT64_MAX);
}

std::uint64_t DriverPool::idle_bytes() const {
  const std::uint64_t held = reserved_bytes();
  return minus_or_zero(held, used(*this).value_or(0));
}

// Relies on a launch to count itself before it checks the present memory.
CUresult DriverPool::Graphs::trim() {
  losses.fetch_add(1);
  if (relying.load() != 0) {
    owed.store(true);
    if (relying.load() != 0 || !owed.exchange(false)) {  // if not, the last launch has ended meanwhile
      return CUDA_SUCCESS;
    }
  }
  if (!real.cuDeviceGraphMemTrim.present()) {
    return CUDA_ERROR_NOT_FOUND;
  }
  const RelaxedCapture relaxed;
  return real.cuDeviceGraphMemTrim(device);
}

void DriverPool::Graphs::end_relying() {
  if (relying.fetch_sub(1) == 1 && owed.exchange(false)) {
    trim();
  }
}

}  // namespace ration::policy
