// The pool of one context life: its blocks, and the fast path to them, one critical section for a hit.
// Layer: policy/block_pool. Threads: any; the lock of `blocks` guards the fast path too, and nothing is taken under it.
// Owns: the pool's books; its slabs belong to the driver and go with the context.
//
// The fast path is open while a call of the default kind concerns the pool alone: no free that waits, no use that
// brings the preallocation, and a context that is alive and not about to end. A thread that changes one of these closes
// the fast path under the lock first; the next allocation on the slow path opens it again. With a log a hit is followed
// by its record, and until that is written the call is in flight; a block that it freed enters the quarantine after it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/held.h"
#include "base/wait.h"
#include "events/journal.h"
#include "policy/contexts/contexts.h"
#include "pool/shared_pool.h"

namespace ration::policy {

class ContextPools;

// Rounded down: no block fits in the rest, and a driver would round it up, past a limit that it reaches.
constexpr std::uint64_t whole_units(std::uint64_t bytes) {
  return bytes / pool::kUnitBytes * pool::kUnitBytes;
}

// How a slab that is refused backs off: the step of the BFC allocator that JAX and TensorFlow users know.
constexpr std::uint64_t nine_tenths(std::uint64_t bytes) {
  return bytes - bytes / 10 - 1;
}

class alignas(64) ContextPool final : public PoolOfContext {
 public:
  // The smallest slab of a pool that grows: the driver's own page for large allocations.
  static constexpr std::uint64_t kFirstSlabBytes = 2U << 20U;
  // Frees that the fast path keeps for the quarantine.
  static constexpr std::uint32_t kMostFreed = 1024;

  ContextPool() = default;
  explicit ContextPool(Context &owner) : context(&owner) {}
  ContextPool(const ContextPool &) = delete;
  ContextPool &operator=(const ContextPool &) = delete;

  // A hint: a thread that has the lock looks again.
  bool serves(CUcontext handle) const { return handle_.load(std::memory_order_relaxed) == handle; }
  // A live block for a thread whose current context is `handle`. False: nothing happened; take the slow path.
  bool allocate_hit(CUcontext handle, std::uint64_t bytes, events::Journal &journal, std::uint64_t &address) noexcept;
  struct Freed {  // fits two registers
    enum Kind : std::uint8_t {
      no,     // nothing happened; take the slow path
      freed,  // retired, and kept here for the quarantine
      due,    // and it is time for the quarantine of `device` to gather what is kept
      large,  // and to seal it, too
    };
    Kind kind = no;
    bool first = false;  // of those kept here
    std::int32_t device = 0;
    std::uint64_t unserved_bytes = 0;  // the block's size where no hole is as large, or much is freed and not clean
  };
  // A block of more than `most` bytes is not freed here: the fall of the use must be published, which no hit does.
  Freed free_hit(CUcontext handle, std::uint64_t address, events::Journal &journal, std::uint64_t most) noexcept;
  // The same with a log: the caller writes `event`, in which these fill in what the pool knows, and keeps what it freed
  // after that. The totals change with the record. GUARANTEES: where true, the call is in flight until land().
  bool allocate_unrecorded(CUcontext handle, std::uint64_t bytes, events::Alloc &event) noexcept;
  bool retire_unrecorded(CUcontext handle, std::uint64_t most, events::Free &event) noexcept;
  Freed keep_freed(const events::Free &event) noexcept;
  void land() noexcept {
    in_flight.fetch_sub(1);
    wake_waiters();
  }
  // `most_used`, asked under the lock: the live bytes that no hit reaches; 0: it stays as it is, kAnyUse: no bound.
  // REQUIRES: has_fast_path().
  static constexpr std::uint64_t kAnyUse = UINT64_MAX;
  template <class MostUsed>
  void open_to_hits(CUcontext handle, const MostUsed &most_used) noexcept {
    const pool::Guard guard(blocks.mutex());
    if (const std::uint64_t most = most_used(); most != 0) {
      most_used_.store(most, std::memory_order_relaxed);
      handle_.store(handle, std::memory_order_relaxed);
    }
  }
  // A hint.
  bool is_bounded() const { return most_used_.load(std::memory_order_relaxed) != kAnyUse; }
  void close_to_hits() noexcept override;
  bool has_fast_path() const { return table_ != nullptr; }
  // Whether a block there is stitched: it lies among the views. REQUIRES: a context's pool.
  bool is_stitched(std::uint64_t address) const {
    return blocks.stitches() && address - layout.views < layout.views_bytes;
  }

  // The ordinal of its device; -1: it has no context. A hint.
  int device() const { return device_.load(std::memory_order_relaxed); }
  // Whether a free that this thread knows of may be kept here.
  bool keeps_freed() const { return count_.load(std::memory_order_relaxed) != 0; }
  // Calls take(pool, addresses, count, bytes) under the lock with what is kept, if it is `of_device`; the caller has it
  // from then on.
  template <class Take>
  void hand_over(int of_device, const Take &take) {
    const pool::Guard guard(blocks.mutex());
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count == 0 || device_.load(std::memory_order_relaxed) != of_device) {
      return;
    }
    take(*this, freed_.get(), count, bytes_);
    count_.store(0, std::memory_order_relaxed);
    bytes_ = 0;
  }
  // When a free is due.
  void set_due(std::uint64_t blocks_left, std::uint64_t bytes_left, std::uint64_t large_bytes,
               std::uint64_t most_unwaited_bytes) {
    due_blocks_.store(blocks_left, std::memory_order_relaxed);
    due_bytes_.store(bytes_left, std::memory_order_relaxed);
    large_bytes_.store(large_bytes, std::memory_order_relaxed);
    few_bytes_.store(large_bytes / 2, std::memory_order_relaxed);
    constexpr std::uint64_t kHalf = 32;  // of the limit, in large blocks
    const std::uint64_t half = large_bytes < UINT64_MAX / kHalf ? large_bytes * kHalf : UINT64_MAX;
    most_retired_bytes_.store(std::min(half, most_unwaited_bytes), std::memory_order_relaxed);
  }
  // Of blocks of this size few fit under the limit, so that it matters where each lies (BlockPools::is_of_few).
  bool is_of_few(std::uint64_t bytes) const { return bytes >= few_bytes_.load(std::memory_order_relaxed); }

  // The end of the context object: back to the table, or gone. REQUIRES: no other thread uses it but for hits.
  void release() noexcept override;

  // A call between a change to the blocks and its record. The thread that records the end of the whole pool waits for
  // it.
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

 private:
  friend class ContextPools;

  // Parts of a hit, under the lock.
  bool may_allocate(CUcontext handle, std::uint64_t bytes) noexcept
      RATION_POOL_ANNOTATE(requires_capability(blocks.mutex()));
  bool may_free(CUcontext handle, std::uint32_t coming) noexcept
      RATION_POOL_ANNOTATE(requires_capability(blocks.mutex()));
  pool::FreeOutcome retire_locked(std::uint64_t address, std::uint64_t most) noexcept
      RATION_POOL_ANNOTATE(requires_capability(blocks.mutex()));
  Freed enter_freed(std::uint32_t count, std::uint64_t address, std::uint64_t bytes) noexcept
      RATION_POOL_ANNOTATE(requires_capability(blocks.mutex()));

  std::atomic<CUcontext> handle_{nullptr};         // written under the lock; null: closed
  std::atomic<std::uint64_t> most_used_{kAnyUse};  // written under the lock
  std::atomic<int> device_{-1};                    // written under the lock
  std::atomic<std::uint32_t> count_{0};            // written under the lock; of freed_
  std::uint32_t unrecorded_ = 0;                   // retired, to be kept once they are in the log; under the lock
  std::uint64_t bytes_ = 0;                        // of those blocks; under the lock
  std::unique_ptr<pool::Address[]> freed_;         // under the lock
  std::atomic<std::uint64_t> due_blocks_{1};       // hints of the quarantine's
  std::atomic<std::uint64_t> due_bytes_{1};
  std::atomic<std::uint64_t> large_bytes_{UINT64_MAX};
  std::atomic<std::uint64_t> few_bytes_{UINT64_MAX / 2};
  std::atomic<std::uint64_t> most_retired_bytes_{UINT64_MAX};
  ContextPools *table_ = nullptr;

 public:
  pool::SharedPool blocks;
  pool::stitch::Layout layout{};  // where the blocks stitch
  Context *context = nullptr;
  // Counted before the context's end is looked at; the end is set before this is: seq_cst both.
  std::atomic<int> in_flight{0};
  // Blocks that other processes may have open, or are about to (ipc_exporter.h): a free of any block then asks.
  std::atomic<int> shared{0};
  // Its context is gone and nothing is taken into quarantine any more; written under the quarantine's lock.
  std::atomic<bool> closed{false};
};

// nullptr: nothing was allocated in it yet.
inline ContextPool *existing_pool(const Context &context) {
  return static_cast<ContextPool *>(context.pool.load(std::memory_order_acquire));
}

}  // namespace ration::policy
