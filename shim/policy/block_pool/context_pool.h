// The pool of one context life: its blocks, and whether the fast path to them is open (fast_path.h).
// Layer: policy/block_pool. Threads: any; the lock of `blocks` guards the fast path too, and nothing is taken under it.
// Owns: the pool's metadata; its pieces end with the context, or are returned by the backing.
//
// The fast path is open as long as ordinary calls concern this pool alone: frees do not wait, the next request cannot
// trigger the preallocation, and the context is alive and not about to end. A thread that ends one of these conditions
// first closes the fast path under the lock; the next allocation on the slow path opens it again. With a log, a hit
// writes its record after the critical section. Until then the call is in flight; a block that it freed enters the
// quarantine only after the record.
// Design: design/fast-path.md#closing-it
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/held.h"
#include "base/wait.h"
#include "policy/block_pool/kept_frees.h"
#include "policy/contexts/contexts.h"
#include "pool/growth_size.h"
#include "pool/shared_pool.h"

namespace ration::policy {

class Backing;
class ContextPools;

using pool::kFirstSlabBytes;
using pool::nine_tenths;
using pool::whole_units;

class alignas(64) ContextPool final : public PoolOfContext {
 public:
  ContextPool() = default;
  explicit ContextPool(Context &owner) : context(&owner) {}
  ContextPool(const ContextPool &) = delete;
  ContextPool &operator=(const ContextPool &) = delete;

  // Begin and end a pool's life with one context. Only for a pool in a table, which has a fast path.
  void begin_life(ContextPools &table, Context &owner, std::unique_ptr<pool::Address[]> kept_frees);
  void end_life() noexcept;
  bool has_fast_path() const { return table_ != nullptr; }
  // Whether the fast path is open for this context. A hint, which must be checked again under the lock.
  bool serves(CUcontext handle) const { return handle_.load(std::memory_order_relaxed) == handle; }
  // Hits keep the live bytes below this figure; kAnyUse means that there is no bound. A hint.
  static constexpr std::uint64_t kAnyUse = UINT64_MAX;
  std::uint64_t most_used() const { return most_used_.load(std::memory_order_relaxed); }
  // Calls `most_used` under the lock. `most_used` returns the new bound, or 0 to leave the fast path as it is.
  // REQUIRES: has_fast_path().
  template <class MostUsed>
  void open_to_hits(CUcontext handle, const MostUsed &most_used) noexcept {
    const pool::Guard guard(blocks.mutex());
    if (const std::uint64_t most = most_used(); most != 0) {
      most_used_.store(most, std::memory_order_relaxed);
      handle_.store(handle, std::memory_order_relaxed);
    }
  }
  void close_to_hits() noexcept override;
  // The ordinal of the pool's device; -1 if the pool has no context. A hint.
  int device() const { return device_.load(); }
  // Calls kept.hand_over() under the lock if the pool is of that device.
  template <class Take>
  void hand_over_kept(int of_device, const Take &take) {
    const pool::Guard guard(blocks.mutex());
    if (device() == of_device) {
      kept.hand_over(take);
    }
  }

  // Called when the context object is destroyed: returns the pool to the table, or deletes it. REQUIRES: no other
  // thread uses the pool, except for hits.
  void release() noexcept override;

  // A call between its change to the blocks and its record of that change. The thread that records the end of the whole
  // pool waits until no such call is left.
  class InFlight {
   public:
    explicit InFlight(ContextPool &pool) : pool_(pool) {
      pool_.in_flight.fetch_add(1);
      held::note(land, &pool_);
    }
    ~InFlight() {
      if (held::forget(land, &pool_)) {
        land(&pool_);
      }
    }
    InFlight(const InFlight &) = delete;
    InFlight &operator=(const InFlight &) = delete;

   private:
    static void land(void *pool) noexcept { static_cast<ContextPool *>(pool)->land(); }

    ContextPool &pool_;
  };
  void land() noexcept {
    in_flight.fetch_sub(1);
    wake_waiters();
  }

 private:
  std::atomic<CUcontext> handle_{nullptr};         // written under the lock; null: closed
  std::atomic<std::uint64_t> most_used_{kAnyUse};  // written under the lock
  std::atomic<int> device_{-1};                    // written under the lock

 public:
  KeptFrees kept;

 private:
  ContextPools *table_ = nullptr;

 public:
  pool::SharedPool blocks;
  Backing *backing = nullptr;     // set before the first request, for the rest of the context's life
  pool::stitch::Layout layout{};  // the address ranges of a pool of granules
  Context *context = nullptr;
  // The calls in flight. A call counts itself before it checks whether the context has ended; a thread that ends the
  // context notes the end before it reads this counter (all seq_cst).
  std::atomic<int> in_flight{0};
  // The number of blocks that other processes may have open, or may be about to open (ipc_exporter.h). If it is not 0,
  // a free of any block asks the exporter.
  std::atomic<int> shared{0};
  // The context is gone, and no more blocks enter the quarantine. Written under the quarantine's lock.
  std::atomic<bool> closed{false};
};

// The context's pool; nullptr if nothing has been allocated in the context yet.
inline ContextPool *existing_pool(const Context &context) {
  return static_cast<ContextPool *>(context.pool.load(std::memory_order_acquire));
}

// Whether the pool of a context is made of granules.
inline bool has_granules(const Context &context) {
  const ContextPool *pool = existing_pool(context);
  return pool != nullptr && pool->blocks.stitches();
}

// Whether the block at `address` is stitched, which means that it lies in a view. REQUIRES: the pool has a context.
inline bool is_stitched(const ContextPool &pool, std::uint64_t address) {
  return pool.blocks.stitches() && address - pool.layout.views < pool.layout.views_bytes;
}

// The live block of the context's pool around `address`. REQUIRES: the context has a pool.
std::optional<pool::Block> block_at(std::uint64_t address, const Context &owner);

}  // namespace ration::policy
