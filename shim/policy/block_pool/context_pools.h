// The pools of the contexts that have a fast path, found by a context's handle without a lock.
// Layer: policy/block_pool. Threads: any. Owns: the pools; it is as old as the runtime, and they are recycled, never
// freed.
//
// Why a stale handle is harmless: find() reads only this array, which always exists, and its answer is a hint. A pool's
// handle changes under the pool's lock and each hit compares it again under that lock, so a thread that comes late
// finds a pool that is closed or serves another context, and takes the slow path. If the driver reused the handle, the
// pool belongs to the context that has it now, which is what the driver would use.
//
// Why recycling is safe: recycle() runs when the context object is destroyed. It closes the pool under the lock, after
// which no hit touches the blocks. All other users hold the context (ContextRef); for the quarantine the slabs of its
// blocks do, in the directory, until it forgot the pool. So the blocks are reset without the lock.
//
// A program under ThreadSanitizer sees libc's functions, not our atomics: locks as old as the runtime need no other
// proof that they were made before they are taken, and a last lock and unlock orders the reset before the next owner.
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

  // A pool for the rest of the context's life; without a fast path where too many contexts want one. Throws bad_alloc.
  ContextPool &acquire(Context &context);

  // Whether any fast path was ever opened: else it is not worth asking what is current. With a log its hits are
  // recorded, and no others are in use.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  bool in_recorded_use() const { return in_recorded_use_.load(std::memory_order_relaxed); }
  void note_use(bool recorded) { (recorded ? in_recorded_use_ : in_use_).store(true, std::memory_order_relaxed); }
  // The pool whose fast path is open for `handle`, or nullptr. No lock: it may close any time.
  ContextPool *find(CUcontext handle);
  void close_all(int device) noexcept;
  // Calls visit(pool) with every pool of `device` that has a fast path, and perhaps with some that were just recycled.
  // A pool that it misses was acquired after it: what was stored before, seq_cst, is seen by that pool's `may_open`.
  template <class Visit>
  void each_of(int device, const Visit &visit) {
    for (std::uint64_t left = claimed_.load(); left != 0; left &= left - 1) {
      ContextPool &pool = pools_[std::countr_zero(left)];
      if (pool.device() == device) {
        visit(pool);
      }
    }
  }

  // The end of a pool's life.
  void recycle(ContextPool &pool) noexcept;

 private:
  static constexpr unsigned kPools = 64;  // a bit each of claimed_
  static constexpr unsigned kWays = 4;    // places that a handle may have
  static unsigned first_of(CUcontext handle);

  ContextPool pools_[kPools];
  std::atomic<std::uint64_t> claimed_{0};
  std::atomic<bool> in_use_{false};
  std::atomic<bool> in_recorded_use_{false};
};

}  // namespace ration::policy
