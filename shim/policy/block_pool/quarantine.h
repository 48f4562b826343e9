// Freed blocks that the device may still be using: retired in their pool, reclaimed once everything that was submitted
// before their free has finished (fences.h). One for each device.
// Layer: policy. Threads: any; driver calls outside the lock, which is taken before a pool's own. Owns: the batches.
//
// Frees collect in batches; after so many frees or bytes these are sealed into an epoch: one moment for all of them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>

#include "base/lock.h"
#include "driver/functions.h"
#include "policy/block_pool/context_pool.h"
#include "policy/block_pool/fast_path.h"
#include "policy/block_pool/ipc_exporter.h"
#include "policy/contexts/fence_tracker.h"

namespace ration::policy {

class Quarantine {
 public:
  Quarantine(FenceTracker &fences, FastPaths &fast_paths, int device)
      : fences_(fences), fast_paths_(fast_paths), device_(device) {}

  // A free that was taken in but is not in the log yet: until it is, its block is nobody else's.
  class PendingRecord {
   public:
    PendingRecord() = default;
    explicit PendingRecord(std::atomic<int> &open) : open_(&open) {}
    PendingRecord(PendingRecord &&other) noexcept : open_(other.open_) { other.open_ = nullptr; }
    PendingRecord &operator=(PendingRecord &&other) noexcept;
    ~PendingRecord() { close(); }
    void close();

   private:
    std::atomic<int> *open_ = nullptr;
  };
  enum class Retired {
    retired,
    kept,            // another process may have it open: it is the exports', and there is no ticket
    not_a_block,     // nothing live starts there; nothing changed
    no_host_memory,  // nothing changed
  };
  // `bytes` gets the block's size. True in `due` when it is time to collect().
  Retired retire(ContextPool &pool, pool::Address address, std::uint64_t &bytes, PendingRecord &ticket, bool &due,
                 IpcExporter *exports = nullptr);
  // A retired block that was kept and is nobody else's any more. False: the host has no memory, nothing changed.
  bool take_back(ContextPool &pool, pool::Address address, std::uint64_t bytes);
  // Takes in what was freed on the short way; true when it is time to collect().
  bool take_in();
  // How large the device's pools are, and how many bytes may well stay unsealed.
  void set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes);

  struct Cleaned {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    CUresult error = CUDA_SUCCESS;  // of a driver call of ours; such a call cleans nothing
    bool capturing = false;         // what is not sealed cannot be while a capture runs
    bool ending = false;            // nor while a context is being destroyed
    bool waited = false;            // for the device
    bool others_cleaned = false;    // maybe: look into the pool again
  };
  // Gives back what is clean by now. Never waits for the device.
  enum class Sealing {
    always,      // what is open too
    worthwhile,  // only where nothing was clean and much is open, or nothing is sealed: each epoch costs driver calls
  };
  Cleaned collect(Sealing sealing) noexcept;
  // The same, having waited for the oldest epoch where nothing was clean; at once where cleaned() is no longer `seen`.
  // Neither blocks nor others_cleaned nor an error nor a capture: there is nothing left to wait for.
  Cleaned wait(std::uint64_t seen) noexcept;
  Cleaned wait() noexcept { return wait(cleaned()); }
  // Blocks that were taken in so far; that were given back so far.
  std::uint64_t retired();
  std::uint64_t cleaned() const { return cleaned_.load(std::memory_order_relaxed); }
  // Waits until everything that was freed before the call is clean (free=synchronous).
  Cleaned drain() noexcept;

  // The context's pool goes: its blocks are reclaimed at once, for the device is through with a context that is gone.
  void forget(ContextPool &pool) noexcept;
  std::uint64_t bytes();
  std::uint64_t blocks();

 private:
  static constexpr std::size_t kBatchBlocks = 1024;
  static constexpr std::size_t kSliceBlocks = 64;
  static constexpr unsigned kCoarsest = 2;
  struct Entry {
    pool::Address address;
    ContextPool *pool;
  };
  struct Batch {
    std::array<Entry, kBatchBlocks> entries;
    std::size_t count = 0;
    std::atomic<int> unrecorded{0};  // tickets
  };
  struct Epoch {
    std::list<Batch> batches;
    Fence moment;
    int users = 0;        // threads that ask the driver about the moment
    bool passed = false;  // for ever
  };

  bool make_room() REQUIRES(mutex_);
  // What the fast paths keep becomes open. Where the host has no memory for it, it stays with them: no moment speaks
  // for it.
  void gather() REQUIRES(mutex_);
  void reclaim_kept(ContextPool &pool) noexcept REQUIRES(mutex_);
  bool has_spare_batch() REQUIRES(mutex_);
  void count_in(std::uint64_t blocks, std::uint64_t bytes) REQUIRES(mutex_);
  bool is_due() const REQUIRES(mutex_);
  // Tells the fast paths when their frees are due.
  void publish_due() REQUIRES(mutex_);
  void seal(Cleaned &cleaned);
  void ask_about_all(Cleaned &cleaned);
  // To be answered with note_answer; nullptr when none is left.
  Epoch *oldest_not_passed(std::uint64_t up_to);
  void note_answer(Epoch &epoch, CUresult answer, Cleaned &cleaned);
  void wait_for(Epoch &epoch, Cleaned &cleaned);
  // Gives back some blocks of an epoch that has passed; false when there are none, but for `outstanding` ones whose
  // record another thread is writing.
  bool reclaim_slice(Cleaned &cleaned, bool &outstanding);
  // Entries one behind another.
  void release(const Entry *entries, std::size_t count, Cleaned &cleaned) REQUIRES(mutex_);
  void forget_in(std::list<Batch> &batches, const ContextPool &pool, Cleaned &cleaned) REQUIRES(mutex_);
  bool is_empty();
  void grow_coarser();
  bool sealing();
  bool worth_sealing();
  enum class Choice { wait, look_again, in_other_hands, nothing };
  Choice choose(std::uint64_t seen, Epoch *&oldest);

  FenceTracker &fences_;
  FastPaths &fast_paths_;
  const int device_;
  RankedMutex mutex_{Rank::kQuarantine};
  std::list<Batch> open_ GUARDED_BY(mutex_);
  std::uint64_t open_blocks_ GUARDED_BY(mutex_) = 0;
  std::uint64_t open_bytes_ GUARDED_BY(mutex_) = 0;
  std::list<Epoch> sealed_ GUARDED_BY(mutex_);  // oldest first
  std::list<Batch> spare_batches_ GUARDED_BY(mutex_);
  std::list<Epoch> spare_epochs_ GUARDED_BY(mutex_);
  std::uint64_t finest_bytes_ GUARDED_BY(mutex_) = 0;      // of an epoch
  std::uint64_t next_seal_blocks_ GUARDED_BY(mutex_) = 0;  // not before so many are open
  int sealing_ GUARDED_BY(mutex_) = 0;                     // threads that hold batches in neither list
  unsigned coarseness_ GUARDED_BY(mutex_) = 0;             // epochs are 2^this times the finest
  std::atomic<std::uint64_t> bytes_{0};                    // written under the lock
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> retired_{0};
  std::atomic<std::uint64_t> cleaned_{0};
};

}  // namespace ration::policy
