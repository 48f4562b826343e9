// The deferred queue (deferred_queue.h) of one device's pools: blocks that are retired in their pool until no work that
// was submitted before their free can use them. Layer: policy/block_pool.
// Threads: any; driver calls outside the lock, which is taken before a pool's own. Owns: the batches.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/lock.h"
#include "policy/block_pool/context_pools.h"
#include "policy/block_pool/ipc_exporter.h"
#include "policy/block_pool/seal_pace.h"
#include "policy/contexts/deferred_queue.h"

namespace ration::policy {

// Up to 1,024 retired blocks.
struct QuarantineBatch final : Deferred {
  struct Entry {
    pool::Address address;
    ContextPool *pool;
  };
  std::array<Entry, SealPace::kFinestBlocks> entries;
  std::size_t count = 0;
  std::atomic<int> unrecorded{0};  // blocks whose free is not in the log yet
};

class Quarantine final : public DeferredQueue {
 public:
  Quarantine(FenceTracker &fences, ContextPools &pools, int device)
      : DeferredQueue(fences, Rank::kQuarantine, device), pools_(pools) {}

  // A free that is in quarantine but not in the log yet. Its block is not reused until the record is written.
  struct Close {
    void operator()(std::atomic<int> *pending) const;
  };
  using PendingRecord = std::unique_ptr<std::atomic<int>, Close>;
  enum class Retired {
    retired,
    kept,            // another process may have it open, so the exporter keeps it; there is no pending record
    not_a_block,     // no live block starts there; nothing changed
    no_host_memory,  // nothing changed
  };
  // Retires a block and puts it into quarantine. `bytes` gets its size; `due` becomes true when it is time to
  // collect(). `ordered`: the block is freed in stream order.
  Retired retire(ContextPool &pool, pool::Address address, std::uint64_t &bytes, PendingRecord &pending, bool &due,
                 IpcExporter *exports = nullptr, bool ordered = false);
  // Takes in a retired block that the exporter kept and that no other process has open any more. Returns false, with
  // nothing changed, if host memory has run out.
  bool take_back(ContextPool &pool, pool::Address address, std::uint64_t bytes);
  void set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes, std::uint64_t most_bytes,
                 bool takes_from_others = false);
  const SealPace &pace() const { return pace_; }

  // Called after a free on the fast path that was due or that freed a large block. Unless the block is large, checks
  // again whether a seal is due, because the fast path may not know of recent frees on other paths.
  void collect_freed(bool large) noexcept;
  Cleaned wait(std::uint64_t seen) noexcept;
  Cleaned wait_for_context(const Context &context) noexcept;
  // These functions include blocks that the fast path retired. retired() counts all blocks so far; the other two cover
  // the blocks in quarantine now.
  std::uint64_t retired();
  std::uint64_t bytes();
  std::uint64_t blocks();
  std::uint64_t freed_bytes() const { return DeferredQueue::bytes(); }  // without the fast path's recent frees

  // Whether more bytes than the cap are freed and not clean. There is a cap only if both hold: nothing but waiting
  // shows what is clean, and growth would take memory from other processes.
  bool exceeds_cap();

  // Whether a free most likely has no fence yet. Takes no lock.
  bool has_unsealed() {
    bool kept = DeferredQueue::has_unsealed();
    pools_.each_of(device_, [&](const ContextPool &pool) { kept |= pool.kept.keeps_any(); });
    return kept;
  }

  // Called when the pool's context has ended. The device then no longer uses the pool's blocks, so they are reclaimed
  // at once.
  void forget(ContextPool &pool) noexcept;

 private:
  using Batch = QuarantineBatch;

  bool reclaim(Items &items, Cleaned &cleaned) override REQUIRES(mutex_);
  // Takes in the blocks that the fast paths retired; if the host lacks memory, the fast paths keep them, unfenced.
  void gather() override REQUIRES(mutex_);
  bool worth_sealing() override REQUIRES(mutex_);
  void note_seal(Seal seal) override REQUIRES(mutex_);

  // Makes room for a batch of blocks. Returns false if host memory has run out.
  bool make_room() REQUIRES(mutex_);
  // REQUIRES: make_room() has succeeded.
  Batch &enter(ContextPool &pool, pool::Address address) REQUIRES(mutex_);
  // The cap on bytes that are freed and not clean; UINT64_MAX if there is none.
  std::uint64_t most_unwaited_bytes() const;
  // Tells the fast paths when their frees are due.
  void publish_due() REQUIRES(mutex_);

  ContextPools &pools_;
  Items spare_batches_ GUARDED_BY(mutex_);
  SealPace pace_;
};

}  // namespace ration::policy
