// The pools of the contexts that have a fast path, found by a context's handle without a lock.
// Layer: policy/block_pool. Threads: any. Owns: the pools; it is as old as the runtime, and they are recycled, never
// freed.
//
// Why a stale handle is harmless: find() reads only this array, which always exists, and its answer is a hint. A pool's
// handle changes under the pool's lock, and each hit compares it again under that lock. A thread that comes late thus
// finds a pool that is closed or serves another context, and takes the slow path. If the driver reused the handle, the
// pool belongs to the context that has the handle now, which is also the context that the driver would use.
//
// Why recycling is safe: recycle() runs when the context object is destroyed. It closes the pool under the lock, after
// which no hit touches the blocks. All other users keep the context object alive (ContextRef). The quarantine does not,
// but the pool's slabs do: they stay in the slab directory until the quarantine has forgotten the pool. So the blocks
// are reset without the lock.
//
// A ThreadSanitizer in the program sees calls of libc's functions, but not our atomics. It needs no proof that a lock
// was initialised before it is taken, because these locks are as old as the runtime. At the end, the lock is taken and
// released once more, which shows the sanitizer that the reset comes before the next owner's use.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "policy/block_pool/context_pool.h"

namespace ration::policy {

class ContextPools {
 public:
  ContextPools() = default;
  ContextPools(const ContextPools &) = delete;
  ContextPools &operator=(const ContextPools &) = delete;

  // A pool for the rest of the context's life. It has no fast path if too many contexts want one. Throws bad_alloc.
  ContextPool &acquire(Context &context);

  // in_use(): whether any fast path was ever opened; if none was, it is not worthwhile to ask which context is current.
  // With a log, in_recorded_use() says the same for hits that are recorded, and in_use() stays false.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  bool in_recorded_use() const { return in_recorded_use_.load(std::memory_order_relaxed); }
  void note_use(bool recorded) { (recorded ? in_recorded_use_ : in_use_).store(true, std::memory_order_relaxed); }
  // The pool whose fast path is open for `handle`, or nullptr. Takes no lock, so the fast path may close at any time.
  ContextPool *find(CUcontext handle);
  void close_all(int device) noexcept;
  // Calls visit(pool) with every pool of `device` that has a fast path, and perhaps with some that were just recycled.
  // A pool that the loop misses was acquired after the loop began, so open_to_hits() of that pool sees all that was
  // stored before the loop (seq_cst).
  template <class Visit>
  void each_of(int device, const Visit &visit) {
    for (std::uint64_t left = claimed_.load(); left != 0; left &= left - 1) {
      ContextPool &pool = pools_[std::countr_zero(left)];
      if (pool.device() == device) {
        visit(pool);
      }
    }
  }

  // Ends a pool's life and makes it available to another context.
  void recycle(ContextPool &pool) noexcept;

 private:
  static constexpr unsigned kPools = 64;  // each has one bit in claimed_
  static constexpr unsigned kWays = 4;    // the slots in which a handle may be
  static unsigned first_of(CUcontext handle);

  ContextPool pools_[kPools];
  std::atomic<std::uint64_t> claimed_{0};
  std::atomic<bool> in_use_{false};
  std::atomic<bool> in_recorded_use_{false};
};

}  // namespace ration::policy
