// The deferred queue (deferred_queue.h) of one device's pools: blocks that are retired in their pool until no work that
// was submitted before their free can use them. Layer: policy/block_pool.
// Threads: any; driver calls outside the lock, which is taken before a pool's own. Owns: the batches.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <utility>

#include "base/lock.h"
#include "policy/block_pool/context_pools.h"
#include "policy/block_pool/ipc_exporter.h"
#include "policy/contexts/deferred_queue.h"

namespace ration::policy {

// Up to 1,024 retired blocks in one list node.
struct QuarantineBatch {
  static constexpr std::size_t kMostBlocks = 1024;
  struct Entry {
    pool::Address address;
    ContextPool *pool;
  };
  std::array<Entry, kMostBlocks> entries;
  std::size_t count = 0;
  std::atomic<int> unrecorded{0};  // pending records
};

class Quarantine final : public DeferredQueue<QuarantineBatch> {
 public:
  Quarantine(FenceTracker &fences, ContextPools &pools, int device)
      : DeferredQueue(fences, Rank::kQuarantine, device), pools_(pools), device_(device) {}

  // A free that was taken in but is not in the log yet: until it is, its block is not reused.
  class PendingRecord {
   public:
    PendingRecord() = default;
    explicit PendingRecord(std::atomic<int> &open) : open_(&open) {}
    PendingRecord(PendingRecord &&other) noexcept : open_(std::exchange(other.open_, nullptr)) {}
    PendingRecord &operator=(PendingRecord &&other) noexcept;
    ~PendingRecord() { close(); }
    void close();

   private:
    std::atomic<int> *open_ = nullptr;
  };
  enum class Retired {
    retired,
    kept,            // another process may have it open: the exporter keeps it, and there is no pending record
    not_a_block,     // nothing live starts there; nothing changed
    no_host_memory,  // nothing changed
  };
  // `bytes` gets the block's size. True in `due` when it is time to collect(). `ordered`: it is freed in stream order.
  Retired retire(ContextPool &pool, pool::Address address, std::uint64_t &bytes, PendingRecord &pending, bool &due,
                 IpcExporter *exports = nullptr, bool ordered = false);
  // A retired block that the exporter kept and that no other process has open any more. False: the host has no memory,
  // nothing changed.
  bool take_back(ContextPool &pool, pool::Address address, std::uint64_t bytes);
  // How large the device's pools are, how many bytes may well stay unsealed, how large the pools can become, and
  // whether other processes could have what they take.
  void set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes, std::uint64_t most_bytes,
                 bool takes_from_others = false);
  // The free of a block of so many bytes seals at once: few of them fit, so the program will need this one again soon,
  // and what it submits until then would count against it.
  std::uint64_t large_bytes() const { return large_bytes_.load(std::memory_order_relaxed); }

  // For a free of the fast path that was due, or of a large block; what the fast path knows of other paths' frees may
  // be old.
  void collect_due() noexcept;
  void collect_large() noexcept;
  Cleaned wait(std::uint64_t seen) noexcept;
  Cleaned wait() noexcept { return wait(reclaimed()); }
  Cleaned wait_for_context(const Context &context) noexcept;
  // With what the fast path retired. `retired`: so far.
  std::uint64_t retired();
  std::uint64_t bytes();
  std::uint64_t blocks();
  std::uint64_t freed_bytes() const { return DeferredQueue::bytes(); }  // without what the fast path retired since

  // A pool that could grow should first look for memory here once this much is freed and not clean: half of what the
  // pools hold, 64 MiB at least.
  std::uint64_t cap_bytes() const { return cap_bytes_.load(std::memory_order_relaxed); }
  // Whether it is more, where only a call that waits learns what is clean, and growth would take from other processes.
  bool exceeds_cap() { return is_capped() && bytes() > most_unwaited_bytes(); }

  // Whether a free has no fence yet, most likely. No lock.
  bool has_unsealed() {
    bool kept = DeferredQueue::has_unsealed();
    pools_.each_of(device_, [&](const ContextPool &pool) { kept |= pool.kept.keeps_any(); });
    return kept;
  }

  // The pool's context has ended, so the device is through with its blocks: they are reclaimed at once.
  void forget(ContextPool &pool) noexcept;

 private:
  static constexpr std::size_t kSliceBlocks = 64;
  static constexpr unsigned kCoarsest = 2;
  static constexpr std::uint64_t kFewBlocks = 64;
  static constexpr std::uint64_t kLeastCapBytes = 64U << 20U;
  using Batch = QuarantineBatch;

  bool reclaim(Items &items, Cleaned &cleaned) override REQUIRES(mutex_);
  // What the fast paths retired becomes open. If the host has no memory for it, it stays there, covered by no fence.
  void gather() override REQUIRES(mutex_);
  bool worth_sealing() override REQUIRES(mutex_);
  bool is_due() override REQUIRES(mutex_);
  void note_seal(Seal seal) override REQUIRES(mutex_);

  bool make_room() REQUIRES(mutex_);
  bool has_spare_batch() REQUIRES(mutex_);
  Batch &enter(ContextPool &pool, pool::Address address) REQUIRES(mutex_);
  bool is_capped() const { return takes_from_others_.load(std::memory_order_relaxed) && !fences_.by_events(); }
  // UINT64_MAX: no cap.
  std::uint64_t most_unwaited_bytes() const;
  // Tells the fast paths when their frees are due.
  void publish_due() REQUIRES(mutex_);
  // Adjacent entries.
  DeferredSize release(const Batch::Entry *entries, std::size_t count) REQUIRES(mutex_);
  DeferredSize forget_in(Items &batches, const ContextPool &pool) REQUIRES(mutex_);
  void reclaim_kept(ContextPool &pool) noexcept REQUIRES(mutex_);

  ContextPools &pools_;
  const int device_;
  Items spare_batches_ GUARDED_BY(mutex_);
  std::uint64_t finest_bytes_ GUARDED_BY(mutex_) = 0;      // of an epoch
  std::uint64_t next_seal_blocks_ GUARDED_BY(mutex_) = 0;  // not before so many are open
  unsigned coarseness_ GUARDED_BY(mutex_) = 0;             // epochs are 2^this times the finest
  std::atomic<std::uint64_t> large_bytes_{UINT64_MAX};
  std::atomic<std::uint64_t> cap_bytes_{kLeastCapBytes};
  std::atomic<bool> takes_from_others_{false};
  std::atomic<std::uint64_t> left_bytes_{0};  // that other contexts kept at the latest wait_for_context()
};

}  // namespace ration::policy
