#include "policy/block_pool/context_pools.h"

#include <utility>

namespace ration::policy {

// Handles are small numbers or addresses, whose low and high bits say little. The top bits of a product depend on all.
unsigned ContextPools::first_of(CUcontext handle) {
  const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
  return static_cast<unsigned>((number * 0x9e3779b97f4a7c15U) >> 58U) % kPools;
}

ContextPool &ContextPools::acquire(Context &context) {
  auto kept_frees = std::make_unique<pool::Address[]>(KeptFrees::kMost);
  for (unsigned way = 0; way < kWays; ++way) {
    const unsigned index = (first_of(context.handle) + way) % kPools;
    const std::uint64_t bit = std::uint64_t{1} << index;
    if ((claimed_.fetch_or(bit) & bit) == 0) {
      pools_[index].begin_life(*this, context, std::move(kept_frees));
      return pools_[index];
    }
  }
  return *new ContextPool(context);
}

void ContextPools::recycle(ContextPool &pool) noexcept {
  pool.end_life();
  claimed_.fetch_and(~(std::uint64_t{1} << (&pool - pools_)));
}

ContextPool *ContextPools::find(CUcontext handle) {
  const unsigned first = first_of(handle);
  for (unsigned way = 0; way < kWays; ++way) {
    ContextPool &pool = pools_[(first + way) % kPools];
    if (pool.serves(handle)) {
      return &pool;
    }
  }
  return nullptr;
}

void ContextPools::close_all(int device) noexcept {
  each_of(device, [](ContextPool &pool) { pool.close_to_hits(); });
}

}  // namespace ration::policy
