#include "policy/block_pool/context_pool.h"

#include "policy/block_pool/context_pools.h"

namespace ration::policy {

bool ContextPool::allocate_hit(CUcontext handle, std::uint64_t bytes, events::Journal &journal,
                               std::uint64_t &address) noexcept {
  const pool::Guard guard(blocks.mutex());
  if (!serves(handle)) {
    return false;
  }
  if (is_of_few(bytes) && !blocks.is_in_one_piece_locked()) [[unlikely]] {
    return false;  // slabs, or holes, may have to be merged first
  }
  const pool::AllocateOutcome outcome = blocks.allocate_locked(bytes);
  if (!outcome) {
    return false;
  }
  // Under the lock: a thread that closes the fast path finds every block that was taken here in the totals.
  journal.count_pool_alloc(device(), outcome.block.bytes);
  address = outcome.block.address;
  return true;
}

ContextPool::Freed ContextPool::free_hit(CUcontext handle, std::uint64_t address, events::Journal &journal,
                                         [[maybe_unused]] std::uint64_t most) noexcept {
  const pool::Guard guard(blocks.mutex());
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  if (!serves(handle) || count == kMostFreed) {
    return {};
  }
  if (shared.load() != 0) {
    return {};  // this may be the block that another process has open
  }
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine.cc
  const pool::FreeOutcome outcome = blocks.free_locked(address);
#else
  const pool::FreeOutcome outcome = blocks.retire_locked(address, most);
#endif
  if (!outcome) {
    return {};  // of another pool, of none, or too large
  }
  Freed freed{Freed::freed, count == 0, device_.load(std::memory_order_relaxed)};
  journal.count_pool_free(freed.device, outcome.bytes);
#ifdef RATION_BREAK_QUARANTINE
  return freed;
#endif
  freed_[count] = address;
  count_.store(count + 1, std::memory_order_relaxed);
  bytes_ += outcome.bytes;
  if (!blocks.has_room_locked(outcome.bytes) ||
      blocks.retired_bytes_locked() > most_retired_bytes_.load(std::memory_order_relaxed)) [[unlikely]] {
    freed.unserved_bytes = outcome.bytes;
  }
  if (outcome.bytes >= large_bytes_.load(std::memory_order_relaxed)) [[unlikely]] {
    freed.kind = Freed::large;
  } else if (count + 1 >= due_blocks_.load(std::memory_order_relaxed) ||
             bytes_ >= due_bytes_.load(std::memory_order_relaxed)) {
    freed.kind = Freed::due;
  }
  return freed;
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

}  // namespace ration::policy
