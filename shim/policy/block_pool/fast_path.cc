#include "policy/block_pool/fast_path.h"

#include "base/cancellation.h"
#include "base/clock.h"

namespace ration::policy {
namespace {

using driver::real;

// Called under the lock. A block so large that few fit is no hit unless the pool is in one piece: slabs or holes may
// have to be merged first.
inline pool::AllocateOutcome allocate_locked(ContextPool &pool, CUcontext handle, std::uint64_t bytes) noexcept
    RATION_POOL_ANNOTATE(requires_capability(pool.blocks.mutex())) {
  if (!pool.serves(handle) || pool.blocks.used_bytes_locked() + bytes >= pool.most_used() ||
      (pool.kept.is_of_few(bytes) && !pool.blocks.is_in_one_piece_locked())) {
    return {pool::AllocateOutcome::Kind::kNoRoom, {}, 0};
  }
  return pool.blocks.allocate_locked(bytes);
}

// Returns "not a block" if the address is in another pool or in none, or if the block has more than `most` bytes, so
// that the fall in use must be published. It does so for every address while any block is shared: this one may be the
// block that another process has open.
inline pool::FreeOutcome retire_locked(ContextPool &pool, CUcontext handle, std::uint64_t address,
                                       [[maybe_unused]] std::uint64_t most) noexcept
    RATION_POOL_ANNOTATE(requires_capability(pool.blocks.mutex())) {
  if (!pool.serves(handle) || !pool.kept.has_room() || pool.shared.load() != 0) {
    return {pool::FreeOutcome::Kind::kNotABlock, 0};
  }
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine.cc
  return pool.blocks.free_locked(address);
#else
  return pool.blocks.retire_locked(address, most);
#endif
}

inline Freed keep_locked(ContextPool &pool, std::uint64_t address, std::uint64_t bytes,
                         [[maybe_unused]] bool expected) noexcept
    RATION_POOL_ANNOTATE(requires_capability(pool.blocks.mutex())) {
#ifdef RATION_BREAK_QUARANTINE
  return {Freed::freed, false, pool.device()};
#endif
  Freed freed =
      pool.kept.keep(address, bytes, expected, pool.blocks.retired_bytes_locked(), pool.blocks.has_room_locked(bytes));
  freed.device = pool.device();
  return freed;
}

}  // namespace

namespace hit {

bool allocate(ContextPool &pool, CUcontext handle, std::uint64_t bytes, events::Journal &journal,
              std::uint64_t &address) noexcept {
  const pool::Guard guard(pool.blocks.mutex());
  const pool::AllocateOutcome outcome = allocate_locked(pool, handle, bytes);
  if (!outcome) {
    return false;
  }
  // Counted under the lock, so that a thread that closes the fast path finds every block that was taken here in the
  // totals.
  journal.count_pool_alloc(pool.device(), outcome.block.bytes);
  address = outcome.block.address;
  return true;
}

bool allocate_unrecorded(ContextPool &pool, CUcontext handle, std::uint64_t bytes, events::Alloc &event) noexcept {
  const pool::Guard guard(pool.blocks.mutex());
  const pool::AllocateOutcome outcome = allocate_locked(pool, handle, bytes);
  if (!outcome) {
    return false;
  }
  pool.in_flight.fetch_add(1);  // under the lock, so that a thread that closes the fast path sees it, and waits
  event.address = outcome.block.address;
  event.size = outcome.block.bytes;
  event.slab = outcome.block.slab;
  event.device = pool.device();
  event.context = pool.context->number;
  event.stitched = is_stitched(pool, outcome.block.address);
  return true;
}

Freed free(ContextPool &pool, CUcontext handle, std::uint64_t address, events::Journal &journal,
           std::uint64_t most) noexcept {
  const pool::Guard guard(pool.blocks.mutex());
  const pool::FreeOutcome outcome = retire_locked(pool, handle, address, most);
  if (!outcome) {
    return {};
  }
  journal.count_pool_free(pool.device(), outcome.bytes);
  return keep_locked(pool, address, outcome.bytes, false);
}

bool retire_unrecorded(ContextPool &pool, CUcontext handle, std::uint64_t most, events::Free &event) noexcept {
  const pool::Guard guard(pool.blocks.mutex());
  if (pool.serves(handle) && is_stitched(pool, event.address)) {
    return false;  // the slow path publishes how many stitched blocks there are
  }
  const pool::FreeOutcome outcome = retire_locked(pool, handle, event.address, most);
  if (!outcome) {
    return false;
  }
  pool.kept.expect_one();
  pool.in_flight.fetch_add(1);
  event.size = outcome.bytes;
  event.device = pool.device();
  event.context = pool.context->number;
  return true;
}

Freed keep(ContextPool &pool, const events::Free &event) noexcept {
  const pool::Guard guard(pool.blocks.mutex());
  return keep_locked(pool, event.address, event.size, true);
}

}  // namespace hit

ContextPool *FastPath::pool_of_caller(CUcontext &current) {
  if (real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) {
    return nullptr;
  }
  return parts_.context_pools.find(current);
}

// Use is published in shared memory, so a call that would raise it too far above the published figure is no hit. Nor is
// an allocation of a block so large that few fit, while some of the limit is left: it may need a slab that takes that
// rest, too.
ContextPool *FastPath::pool_for(std::uint64_t bytes, CUcontext &current) {
  ContextPool *pool = pool_of_caller(current);
  const int device = pool != nullptr ? pool->device() : -1;
  if (device < 0) {
    return pool;
  }
  const std::uint64_t used = parts_.journal.live_bytes(device);
  const bool concerns_others = parts_.ledger.account(device).exceeds_published(used + bytes) ||
                               (pool->kept.is_of_few(bytes) && pools_.known(device)->bounds.has_rest());
  return concerns_others ? nullptr : pool;
}

// The size of the largest block whose free does not take use too far below the published figure. It is passed as a
// bound, because only the pool knows how large the block is.
std::uint64_t FastPath::most_to_free_unpublished(const ContextPool &pool) const {
  const int device = pool.device();
  if (device < 0) {
    return UINT64_MAX;
  }
  const std::uint64_t used = parts_.journal.live_bytes(device);
  return parts_.ledger.account(device).max_unpublished_fall(used);
}

bool FastPath::allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept {
  CUcontext current = nullptr;
  ContextPool *pool = parts_.context_pools.in_use() ? pool_for(bytes, current) : nullptr;
  std::uint64_t block = 0;
  if (pool == nullptr || !hit::allocate(*pool, current, bytes, parts_.journal, block)) {
    return false;
  }
  *address = block;
  return true;
}

bool FastPath::allocate_hit(const Request &request, events::Via via, CUdeviceptr *address) noexcept {
  const std::uint64_t start = now_ns();
  CUcontext current = nullptr;
  ContextPool *pool = pool_for(request.upper_bound, current);
  events::Alloc event{};
  if (pool == nullptr || !hit::allocate_unrecorded(*pool, current, request.upper_bound, event)) {
    return false;
  }
  event.requested = request.requested;
  event.api = request.api;
  event.kind = events::Kind::device;
  event.source = events::Source::pool;
  event.via = via;
  const std::uint64_t end = now_ns();
  event.duration_ns = end - start;
  parts_.journal.record(event, end);
  pool->land();
  *address = event.address;
  return true;
}

// A context whose fast path is open is alive, so this thread may free; an address in that context's pool is in no other
// pool's slab.
bool FastPath::free_hit(std::uint64_t address) noexcept {
  CUcontext current = nullptr;
  ContextPool *pool = parts_.context_pools.in_use() ? pool_of_caller(current) : nullptr;
  if (pool == nullptr) {
    return false;
  }
  const Freed freed = hit::free(*pool, current, address, parts_.journal, most_to_free_unpublished(*pool));
  finish_free("cuMemFree_v2", current, freed);
  return freed.kind != Freed::no;
}

// The block is retired, then its record is written, and only then does the block enter the quarantine: until then
// nobody can get it.
bool FastPath::free_hit(const char *api, std::uint64_t address) noexcept {
  CUcontext current = nullptr;
  ContextPool *pool = records_hits() ? pool_of_caller(current) : nullptr;
  events::Free event{address, 0, 0, 0, api, 0, events::Source::pool};
  if (pool == nullptr || !hit::retire_unrecorded(*pool, current, most_to_free_unpublished(*pool), event)) {
    return false;
  }
  parts_.journal.record(event);
  const Freed freed = hit::keep(*pool, event);
  pool->land();
  finish_free(api, current, freed);
  return true;
}

inline void FastPath::finish_free(const char *api, CUcontext current, const Freed &freed) noexcept {
  if (freed.first) {
    parts_.fences.note_unsealed();
  }
  if (freed.kind > Freed::freed || freed.unserved_bytes != 0) [[unlikely]] {
    clean_after(api, current, freed);
  }
}

// Makes driver calls, which may be cancellation points. If the context has ended since the free, its blocks went with
// it.
void FastPath::clean_after(const char *api, CUcontext current, const Freed &freed) noexcept {
  const CancellationOff uncancelled;
  DevicePool &device = *pools_.known(freed.device);
  if (freed.kind == Freed::due || freed.kind == Freed::large) {
    device.quarantine.collect_freed(freed.kind == Freed::large);
  }
  const ContextRef context = freed.unserved_bytes != 0 ? parts_.contexts.find(current) : nullptr;
  if (ContextPool *pool = context != nullptr ? existing_pool(*context) : nullptr) {
    const ContextPool::InFlight in_flight(*pool);
    if (context->ended_by.load() == nullptr) {
      pools_.known(context->device)->wait_after_free("cuMemFree_v2", context, freed.unserved_bytes);
    }
  }
  returning_.keep_to_threshold(api, freed.device);
}

// The allocation that triggers the preallocation must not be a hit. Only the device's first context preallocates.
void FastPath::open(ContextPool &pool, const DevicePool &device) noexcept {
  const Context &context = *pool.context;
  if (never_opens_ || !pool.has_fast_path() ||
      (pool.serves(context.handle) && pool.most_used() == ContextPool::kAnyUse) || device.account.is_over_order()) {
    return;
  }
  parts_.context_pools.note_use(parts_.journal.logging());
  pool.open_to_hits(context.handle, [&]() -> std::uint64_t {
    if (!context.may_be_hit()) {
      return 0;
    }
    return device.turn.is_owed_to(&context) ? device.bounds.plan.after : ContextPool::kAnyUse;
  });
}

}  // namespace ration::policy
