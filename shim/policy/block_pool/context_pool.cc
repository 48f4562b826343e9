#include "policy/block_pool/context_pool.h"

#include "policy/block_pool/context_pools.h"

namespace ration::policy {

inline bool ContextPool::may_allocate(CUcontext handle, std::uint64_t bytes) noexcept {
  if (!serves(handle) || blocks.used_bytes_locked() + bytes >= most_used_.load(std::memory_order_relaxed)) {
    return false;
  }
  return !is_of_few(bytes) || blocks.is_in_one_piece_locked();  // else slabs, or holes, may have to be merged first
}

bool ContextPool::allocate_hit(CUcontext handle, std::uint64_t bytes, events::Journal &journal,
                               std::uint64_t &address) noexcept {
  const pool::Guard guard(blocks.mutex());
  if (!may_allocate(handle, bytes)) {
    return false;
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

bool ContextPool::allocate_unrecorded(CUcontext handle, std::uint64_t bytes, events::Alloc &event) noexcept {
  const pool::Guard guard(blocks.mutex());
  if (!may_allocate(handle, bytes)) {
    return false;
  }
  const pool::AllocateOutcome outcome = blocks.allocate_locked(bytes);
  if (!outcome) {
    return false;
  }
  in_flight.fetch_add(1);  // under the lock: a thread that closes the fast path finds it, and waits
  event.address = outcome.block.address;
  event.size = outcome.block.bytes;
  event.slab = outcome.block.slab;
  event.device = device();
  event.context = context->number;
  event.stitched = is_stitched(outcome.block.address);
  return true;
}

// `coming`: blocks that are or may come to be among those kept here. A shared block may be this one, which another
// process has open.
inline bool ContextPool::may_free(CUcontext handle, std::uint32_t coming) noexcept {
  return serves(handle) && coming != kMostFreed && shared.load() == 0;
}

// No block: it is of another pool, of none, or too large.
inline pool::FreeOutcome ContextPool::retire_locked(std::uint64_t address,
                                                    [[maybe_unused]] std::uint64_t most) noexcept {
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine.cc
  return blocks.free_locked(address);
#else
  return blocks.retire_locked(address, most);
#endif
}

inline ContextPool::Freed ContextPool::enter_freed(std::uint32_t count, std::uint64_t address,
                                                   std::uint64_t bytes) noexcept {
  Freed freed{Freed::freed, count == 0, device_.load(std::memory_order_relaxed)};
#ifdef RATION_BREAK_QUARANTINE
  return freed;
#endif
  freed_[count] = address;
  count_.store(count + 1, std::memory_order_relaxed);
  bytes_ += bytes;
  if (!blocks.has_room_locked(bytes) ||
      blocks.retired_bytes_locked() > most_retired_bytes_.load(std::memory_order_relaxed)) [[unlikely]] {
    freed.unserved_bytes = bytes;
  }
  if (bytes >= large_bytes_.load(std::memory_order_relaxed)) [[unlikely]] {
    freed.kind = Freed::large;
  } else if (count + 1 >= due_blocks_.load(std::memory_order_relaxed) ||
             bytes_ >= due_bytes_.load(std::memory_order_relaxed)) {
    freed.kind = Freed::due;
  }
  return freed;
}

ContextPool::Freed ContextPool::free_hit(CUcontext handle, std::uint64_t address, events::Journal &journal,
                                         std::uint64_t most) noexcept {
  const pool::Guard guard(blocks.mutex());
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  if (!may_free(handle, count)) {
    return {};
  }
  const pool::FreeOutcome outcome = retire_locked(address, most);
  if (!outcome) {
    return {};
  }
  journal.count_pool_free(device(), outcome.bytes);
  return enter_freed(count, address, outcome.bytes);
}

bool ContextPool::retire_unrecorded(CUcontext handle, std::uint64_t most, events::Free &event) noexcept {
  const pool::Guard guard(blocks.mutex());
  if (!may_free(handle, count_.load(std::memory_order_relaxed) + unrecorded_) || is_stitched(event.address)) {
    return false;  // the slow path publishes how many stitched blocks there are
  }
  const pool::FreeOutcome outcome = retire_locked(event.address, most);
  if (!outcome) {
    return false;
  }
  ++unrecorded_;
  in_flight.fetch_add(1);
  event.size = outcome.bytes;
  event.device = device();
  event.context = context->number;
  return true;
}

ContextPool::Freed ContextPool::keep_freed(const events::Free &event) noexcept {
  const pool::Guard guard(blocks.mutex());
  --unrecorded_;
  return enter_freed(count_.load(std::memory_order_relaxed), event.address, event.size);
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
