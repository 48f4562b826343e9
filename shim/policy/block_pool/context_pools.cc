#include "policy/block_pool/context_pools.h"

#include <utility>

namespace ration::policy {

// Handles are small numbers or addresses: their low and their high bits say little, the middle of a product enough.
unsigned ContextPools::first_of(CUcontext handle) {
  const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
  return static_cast<unsigned>((number * 0x9e3779b97f4a7c15U) >> 58U) % kPools;
}

ContextPool &ContextPools::acquire(Context &context) {
  auto freed = std::make_unique<pool::Address[]>(ContextPool::kMostFreed);
  for (unsigned way = 0; way < kWays; ++way) {
    const unsigned index = (first_of(context.handle) + way) % kPools;
    const std::uint64_t bit = std::uint64_t{1} << index;
    if ((claimed_.fetch_or(bit) & bit) != 0) {
      continue;
    }
    ContextPool &pool = pools_[index];
    const pool::Guard guard(pool.blocks.mutex());
    pool.table_ = this;
    pool.context = &context;
    pool.in_flight.store(0);
    pool.shared.store(0);
    pool.closed.store(false);
    pool.freed_ = std::move(freed);
    pool.set_due(1, 1, UINT64_MAX, UINT64_MAX);  // the first free asks the quarantine
    pool.device_.store(context.device);
    return pool;
  }
  return *new ContextPool(context);
}

void ContextPools::recycle(ContextPool &pool) noexcept {
  std::unique_ptr<pool::Address[]> freed;
  {
    const pool::Guard guard(pool.blocks.mutex());
    pool.handle_.store(nullptr, std::memory_order_relaxed);
    pool.device_.store(-1, std::memory_order_relaxed);
    pool.count_.store(0, std::memory_order_relaxed);
    pool.unrecorded_ = 0;
    pool.bytes_ = 0;
    pool.freed_.swap(freed);
  }
  pool.blocks.reset();
  pool.context = nullptr;
  { const pool::Guard guard(pool.blocks.mutex()); }
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
