#include "unit/policy/fake_mem_pools.h"

#include <algorithm>

#include "unit/policy/fake_call.h"

namespace ration::test {
namespace {

using driver::real;
FakeMemPools *fake = nullptr;

}  // namespace

template <class Body>
CUresult FakeMemPools::locked(const char *function, const Body &body) {
  return call(function, [&] {
    const std::lock_guard lock(fake->mutex_);
    return body();
  });
}

FakeMemPools::FakeMemPools() {
  fake = this;
  fill(
      real.cuMemPoolGetAttribute, +[](CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
        const CUresult result = locked("cuMemPoolGetAttribute", [&] {
          const Pool &asked = fake->pools[pool];
          return answer(static_cast<cuuint64_t *>(value),
                        attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? asked.used : asked.reserved);
        });
        if (const auto hook = fake->on_asked) {
          hook();
        }
        return result;
      });
  fill(
      real.cuMemPoolTrimTo, +[](CUmemoryPool pool, std::size_t) {
        return locked("cuMemPoolTrimTo", [&] {
          Pool &trimmed = fake->pools[pool];
          ++trimmed.trims;
          const std::uint64_t kept = trimmed.used + fake->kept_in_use;
          trimmed.reserved = std::min(trimmed.reserved, (kept + fake->step - 1) / fake->step * fake->step);
          return CUDA_SUCCESS;
        });
      });
  fill(
      real.cuMemFreeAsync, +[](CUdeviceptr address, CUstream) { return fake->free(address); });
  fill(
      real.cuDeviceGetMemPool, +[](CUmemoryPool *pool, CUdevice) {
        return call("cuDeviceGetMemPool", [&] { return answer(pool, fake->current); });
      });
}

CUresult FakeMemPools::allocate(CUdeviceptr *address, std::uint64_t bytes, CUmemoryPool pool) {
  const CUresult result = locked("cuMemAllocFromPoolAsync", [&] {
    Pool &from = pools[pool];
    from.used += bytes;
    from.reserved = std::max(from.reserved, (from.used + step - 1) / step * step);
    next_address_ += bytes;
    blocks_[next_address_] = {pool, bytes};
    return answer(address, next_address_);
  });
  if (const auto hook = fake->on_alloc) {
    hook();
  }
  return result;
}

CUresult FakeMemPools::free(CUdeviceptr address) {
  return locked("cuMemFreeAsync", [&] {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) {
      return FakeDriver::fake->free(address);
    }
    pools[found->second.pool].used -= found->second.bytes;
    blocks_.erase(found);
    return CUDA_SUCCESS;
  });
}

std::uint64_t FakeMemPools::held() const {
  std::uint64_t bytes = 0;
  for (const auto &[pool, state] : pools) {
    bytes += state.reserved;
  }
  return bytes;
}

}  // namespace ration::test
