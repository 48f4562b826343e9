#include "policy/block_pool/context_pool.h"

#include <algorithm>
#include <utility>

#include "policy/block_pool/context_pools.h"

namespace ration::policy {

void ContextPool::begin_life(ContextPools &table, Context &owner, std::unique_ptr<pool::Address[]> kept_frees) {
  const pool::Guard guard(blocks.mutex());
  table_ = &table;
  context = &owner;
  in_flight.store(0);
  shared.store(0);
  closed.store(false);
  kept.reset(std::move(kept_frees));
  device_.store(owner.device);
}

void ContextPool::end_life() noexcept {
  std::unique_ptr<pool::Address[]> room;
  {
    const pool::Guard guard(blocks.mutex());
    handle_.store(nullptr, std::memory_order_relaxed);
    device_.store(-1, std::memory_order_relaxed);
    room = kept.reset(nullptr);
  }
  blocks.reset();
  backing = nullptr;
  context = nullptr;
  { const pool::Guard guard(blocks.mutex()); }
}

void ContextPool::close_to_hits() noexcept {
  const pool::Guard guard(blocks.mutex());
  handle_.store(nullptr, std::memory_order_relaxed);
}

void ContextPool::release() noexcept {
  if (table_ == nullptr) {
    delete this;
    return;
  }
  table_->recycle(*this);
}

std::optional<pool::Block> block_at(std::uint64_t address, const Context &owner) {
  std::optional<pool::Block> block = existing_pool(owner)->blocks.find(address);
  if (block && address - block->address >= std::max<std::uint64_t>(1, block->requested)) {
    block.reset();  // to the driver, the rest of the last unit is not part of the block
  }
  return block;
}

}  // namespace ration::policy
