// The fast path through BlockPools, and when it opens: the part of BlockPools that serves most calls.
// Layer: policy/block_pool.
#include "base/cancellation.h"
#include "base/clock.h"
#include "policy/block_pool/block_pools.h"

namespace ration::policy {

using driver::real;

ContextPool *BlockPools::pool_of_caller(CUcontext &current) {
  if (real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) {
    return nullptr;
  }
  return context_pools_.find(current);
}

// Usage is published in shared memory, so a call that would take it too far from the published figure is no hit. This
// bounds its rise.
bool BlockPools::has_rise_to_publish(const ContextPool &pool, std::uint64_t bytes) const {
  const int device = pool.device();
  return device >= 0 && ledger_.account(device).exceeds_published(used(device) + bytes);
}

// And this its fall. Only the pool knows how large the block is.
std::uint64_t BlockPools::most_to_free_unpublished(const ContextPool &pool) const {
  const int device = pool.device();
  return device >= 0 ? ledger_.account(device).max_unpublished_fall(used(device)) : UINT64_MAX;
}

// One of few blocks may need a slab that takes what is left of the limit, too.
bool BlockPools::may_need_rest(const ContextPool &pool, std::uint64_t bytes) const {
  const int device = pool.device();
  return pool.is_of_few(bytes) && device >= 0 && has_rest(device);
}

bool BlockPools::allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept {
  CUcontext current = nullptr;
  ContextPool *pool = context_pools_.in_use() ? pool_of_caller(current) : nullptr;
  std::uint64_t block = 0;
  if (pool == nullptr || has_rise_to_publish(*pool, bytes) || may_need_rest(*pool, bytes) ||
      !pool->allocate_hit(current, bytes, journal_, block)) {
    return false;
  }
  *address = block;
  return true;
}

bool BlockPools::allocate_hit(const Request &request, events::Via via, CUdeviceptr *address) noexcept {
  const std::uint64_t start = now_ns();
  CUcontext current = nullptr;
  ContextPool *pool = pool_of_caller(current);
  events::Alloc event{};
  if (pool == nullptr || has_rise_to_publish(*pool, request.upper_bound) || may_need_rest(*pool, request.upper_bound) ||
      !pool->allocate_unrecorded(current, request.upper_bound, event)) {
    return false;
  }
  event.requested = request.requested;
  event.api = request.api;
  event.kind = events::Kind::device;
  event.source = events::Source::pool;
  event.via = via;
  const std::uint64_t end = now_ns();
  event.duration_ns = end - start;
  journal_.record(event, end);
  pool->land();
  *address = event.address;
  return true;
}

inline void BlockPools::finish_free(const char *api, CUcontext current, const ContextPool::Freed &freed) noexcept {
  if (freed.first) {
    fences_.note_unsealed();
  }
  if (freed.kind == ContextPool::Freed::due || freed.kind == ContextPool::Freed::large || freed.unserved_bytes != 0) {
    clean_after_hit(api, current, freed);
  }
}

// Asks the driver, whose calls may be cancellation points.
void BlockPools::clean_after_hit(const char *api, CUcontext current, const ContextPool::Freed &freed) noexcept {
  const CancellationOff uncancelled;
  if (freed.kind == ContextPool::Freed::due) {
    known_state(freed.device)->quarantine.collect_due();
  } else if (freed.kind == ContextPool::Freed::large) {
    known_state(freed.device)->quarantine.collect_large();
  }
  if (freed.unserved_bytes != 0) {
    wait_after_hit(current, freed.unserved_bytes);
  }
  keep_to_threshold(api, freed.device);
}

// A context whose fast path is open is alive, so this thread may free; an address in that context's pool is in no other
// pool's slab.
bool BlockPools::free_hit(std::uint64_t address) noexcept {
  CUcontext current = nullptr;
  ContextPool *pool = context_pools_.in_use() ? pool_of_caller(current) : nullptr;
  if (pool == nullptr) {
    return false;
  }
  const ContextPool::Freed freed = pool->free_hit(current, address, journal_, most_to_free_unpublished(*pool));
  finish_free("cuMemFree_v2", current, freed);
  return freed.kind != ContextPool::Freed::no;
}

// The block is retired, then its record written, then it enters the quarantine: nobody gets it before.
bool BlockPools::free_hit(const char *api, std::uint64_t address) noexcept {
  CUcontext current = nullptr;
  ContextPool *pool = records_hits() ? pool_of_caller(current) : nullptr;
  events::Free event{address, 0, 0, 0, api, 0, events::Source::pool};
  if (pool == nullptr || !pool->retire_unrecorded(current, most_to_free_unpublished(*pool), event)) {
    return false;
  }
  journal_.record(event);
  const ContextPool::Freed freed = pool->keep_freed(event);
  pool->land();
  finish_free(api, current, freed);
  return true;
}

// At the end of every allocation on the slow path. Where frees wait, every call has more to do than the fast path does.
// The allocation that brings the preallocation is no hit; only the device's first context makes one.
void BlockPools::open_fast_path(ContextPool &pool, const DevicePoolState &state) noexcept {
  const Context &context = *pool.context;
  if (!pool.has_fast_path() || (pool.serves(context.handle) && !pool.is_bounded()) || synchronous_free_ ||
      no_fast_path_ || is_over_order(context.device)) {
    return;
  }
  context_pools_.note_use(journal_.logging());
  pool.open_to_hits(context.handle, [&]() -> std::uint64_t {
    if (!context.may_be_hit()) {
      return 0;
    }
    const bool is_due = state.preallocation.load() != DevicePoolState::done;
    return is_due && state.first.load() == &context ? state.plan.after : ContextPool::kAnyUse;
  });
}

}  // namespace ration::policy
