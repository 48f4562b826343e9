// Charges each device for what the driver's own memory pools (cuMemAllocAsync) reserve, not for the blocks that are
// live in them, because other processes also lack the memory that a pool retains.
// Layer: policy/driver_pools. Threads: any; no driver call under the lock.
//
// A call reserves an upper bound first and counts as in flight until the driver has returned. The charge of a pool may
// later fall to the driver's figure for reserved bytes, plus the bounds of all calls that were in flight at any time
// since that figure was queried. Frees only lower the figure, so the sum is never too low. A call that relies on its
// pool's cap may let the pool grow to that cap, no matter how much is reserved for the call, so its bound is the cap.
//
// The memory that graphs allocate counts as one more pool of each device; the driver has separate functions to query
// and trim it (driver_pool.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/lock.h"
#include "base/reentrant_gate.h"
#include "driver/functions.h"
#include "events/journal.h"
#include "ledger/ledger.h"
#include "policy/driver_pools/driver_pool.h"

namespace ration::policy {

// Design: design/charging.md#driver-pools
class StreamPools {
 public:
  using Pool = DriverPool;
  using Graphs = DriverPool::Graphs;
  using PoolRef = std::shared_ptr<Pool>;
  struct Call {
    std::uint64_t charged = 0;  // bytes reserved for the call
    std::uint64_t growth = 0;   // bytes by which the call may let the pool grow
    bool to_cap = false;
    bool shares = false;

    // The part of `growth` for which nothing is reserved, because the call relies on memory that the pool already has.
    std::uint64_t relied() const { return shares && growth > charged ? growth - charged : 0; }
  };

  StreamPools(ledger::Ledger &ledger, events::Journal &journal) : ledger_(ledger), journal_(journal) {}

  // The driver's pools serve whole units of 512 bytes.
  static constexpr std::uint64_t kUnitBytes = 512;
  static constexpr std::uint64_t whole_units(std::uint64_t bytes) {
    return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  }
  // Whether this driver reports what a pool reserves. If not, blocks are charged one by one.
  static bool can_tell();
  // The step by which a pool grows is not documented; this step is assumed until a pool has been seen to grow. If a
  // pool grows by more, the limit is enforced after the call. If the driver keeps odd sizes after a trim, an observed
  // growth may be less than a step. So a bound is never less than the smaller of the largest growth so far and this
  // step. The driver rounds a cap up to whole steps (seen on an H200 with driver 580.159).
  static constexpr std::uint64_t kLargestStep = 32U << 20U;
  // The largest cap that keeps a pool within `bytes`; 0 if there is none.
  static std::uint64_t cap_within(std::uint64_t bytes) { return bytes / kLargestStep * kLargestStep; }
  // Whether this driver's pools can have a cap (CUmemPoolProps::maxSize).
  static bool have_caps();

  // Notes that a pool was created with these properties.
  void created(CUmemoryPool handle, const CUmemPoolProps &properties) noexcept;
  // The pool with this handle. A pool whose creation was not seen is assumed to belong to `device`. Throws bad_alloc.
  PoolRef find(CUmemoryPool handle, int device);
  PoolRef known(CUmemoryPool handle);  // nullptr: no such pool is known
  // The memory that the graphs of a device share. Throws bad_alloc.
  PoolRef of_graphs(int device, CUdevice handle);
  PoolRef known_of_graphs(int device);  // nullptr: no graph has allocated on the device
  static bool can_tell_of_graphs();     // whether this driver reports what graphs reserve
  // Notes that graphs of this process may allocate, because an allocation node was seen.
  void note_graph_allocation() noexcept { graphs_allocate_.store(true, std::memory_order_relaxed); }
  bool graphs_allocate() const { return graphs_allocate_.load(std::memory_order_relaxed); }
  // Called before and after the program's call that destroys a pool. begin_destroy() waits for queries in flight and
  // lets no new query begin. A destroyed pool stays charged while blocks live in it. After that, the pool is an orphan,
  // which stays charged until the device has reached the frees of these blocks.
  PoolRef begin_destroy(CUmemoryPool handle);
  // Returns true if the pool became an orphan.
  bool finish_destroy(const PoolRef &pool, bool success) noexcept;

  // The most bytes by which the pool may grow for a block of `bytes`.
  std::uint64_t upper_bound(const Pool &pool, std::uint64_t bytes);
  // Called before and after the driver's call. The caller reserves `bound` in the device's account before begin(), and
  // releases the bytes that finish() returns.
  Call begin(Pool &pool, std::uint64_t bound);
  // Like begin() and finish(), but reserve() also reserves in the device's account, and finish_and_release() also
  // releases. The account and the charge of the pool change under one lock, so a thread that compares them never takes
  // bytes of this call for other memory.
  std::optional<Call> reserve(Pool &pool, std::uint64_t bound, ledger::Effort effort);
  // Begins a launch that may take `bound`, most of which is in the pool already. Nothing is reserved for it yet, but
  // the charge of the pool does not fall below what the launch may need.
  Call share(Pool &pool, std::uint64_t bound);
  // The bytes in the pool on which other calls rely (Call::relied).
  std::uint64_t relied_by_others(const Pool &pool, const Call &call);
  std::uint64_t latest_figure(const Pool &pool);  // the driver's latest figure for what the pool reserves
  // Reserves `bytes` more for the call. Returns false if the limits do not leave that much.
  bool extend(Pool &pool, Call &call, std::uint64_t bytes);
  // Reserves all bytes by which the pool can still grow to its cap, for a call that only the cap keeps within the
  // limit. Returns nullopt if the limits do not leave that much because other memory is charged.
  std::optional<Call> reserve_to_cap(Pool &pool);
  void finish_and_release(Pool &pool, const Call &call, bool success);
  // Returns how many of the call's reserved bytes the caller must release now. This is 0 if the call succeeded, or if
  // it failed while another call relies on the cap; the next reconcile() then releases what is left over.
  std::uint64_t finish(Pool &pool, const Call &call, bool success);
  // Lowers the charge to the driver's figure. Returns how many bytes the pool holds beyond what is charged for it.
  std::uint64_t reconcile(const char *api, Pool &pool) noexcept;
  // Like reconcile(), but charges missing bytes even beyond the limit, as the pool has them. True if any were missing.
  bool charge_missing(const char *api, Pool &pool) noexcept;
  // Adds to the pool's charge bytes that the caller has reserved in the account.
  void add(const char *api, Pool &pool, std::uint64_t bytes);
  // Counts as live again a block that the program freed but that was never returned to the pool.
  void block_begun(Pool &pool) noexcept;
  // Notes that a block has ended, in stream order or at once. Returns true if the block's pool became an orphan.
  bool block_ended(Pool &pool, std::uint64_t bytes = 0) noexcept;

  // Trims every pool of a device except `kept`. Returns true if less is charged than before.
  bool trim(const char *api, int device, const Pool *kept = nullptr) noexcept;
  // The most bytes that a trim may release after a wait for the device. These are all bytes of orphans, and the bytes
  // that other pools hold beyond their live blocks (if the driver reports them), but of the latter no more than the
  // blocks freed in stream order since the last such wait, plus one step for each.
  std::uint64_t idle(int device) noexcept;
  // Notes that a block of the device has ended in stream order.
  void freed_in_order(int device, std::uint64_t bytes);
  // A mark for everything that has been freed in stream order until now. note_passed() says that the device has
  // finished all work that was submitted before the mark.
  std::uint64_t order_mark(int device) const { return freed_in_order_[device].load(); }
  void note_passed(int device, std::uint64_t mark);
  // The total of the bytes that orphans have ever held, as a mark for release_orphans().
  std::uint64_t orphaned(int device);
  bool has_orphans(int device);
  // Releases the orphans up to a mark that orphaned() returned. To be called once the device has finished all work that
  // was submitted before the mark.
  void release_orphans(const char *api, int device, std::uint64_t up_to) noexcept;
  void reconcile_all(const char *api, int device) noexcept;
  // Trims one pool by `bytes`, if that much is free in it; UINT64_MAX means all that is free. Returns true if less is
  // charged than before.
  bool trim_by(const char *api, Pool &pool, std::uint64_t bytes) noexcept;
  // Trims the pools of a device, one after the other, until missing() is 0.
  void trim_by(const char *api, int device, FunctionRef<std::uint64_t()> missing) noexcept;
  bool can_reach_cap(const Pool &pool);  // the limits leave the pool at least as much as its cap does

 private:
  // Guards a query about a pool that the program may be destroying. Converts to false if it is; the driver must then
  // not be asked about the pool.
  class Asking {
   public:
    Asking(StreamPools &pools, Pool &pool);
    ~Asking();
    Asking(const Asking &) = delete;
    Asking &operator=(const Asking &) = delete;
    explicit operator bool() const { return allowed_; }

   private:
    StreamPools &pools_;
    Pool &pool_;
    bool allowed_ = false;
  };
  // The driver's figure for what a pool reserves, and the pool's `completed_` before that query.
  struct Seen {
    std::uint64_t reserved;
    std::uint64_t completed_before;
  };
  std::uint64_t beyond(const Pool &pool, const Seen &seen) REQUIRES(mutex_);
  // Logs the bytes that excess() returns and then releases them, or fewer if excess() returns less by then. Calls
  // excess() and take(bytes) under the lock.
  void release(const char *api, int device, FunctionRef<std::uint64_t()> excess, FunctionRef<void(std::uint64_t)> take);
  void note_growth(Pool &pool, std::uint64_t reserved) REQUIRES(mutex_);
  PoolRef add_pool(std::shared_ptr<Pool> made);
  std::vector<PoolRef> pools_of(int device);
  bool orphan(Pool &pool) REQUIRES(mutex_);
  Call start(Pool &pool, const Call &call) REQUIRES(mutex_);
  std::uint64_t end(Pool &pool, const Call &call, bool success) REQUIRES(mutex_);
  // Trims one pool by `bytes`; trims the memory of graphs always as a whole.
  void trim_one(const char *api, Pool &pool, std::uint64_t bytes) noexcept;
  bool leaves_its_cap(const Pool &pool, std::uint64_t left) REQUIRES(mutex_);
  // `falling`: charged bytes that are about to be released.
  void record(const char *api, int device, std::uint64_t falling = 0) noexcept;

  ledger::Ledger &ledger_;
  events::Journal &journal_;
  ReentrantGate::Owner recording_{nullptr};  // so that records are written in the order of the changes
  RankedMutex mutex_{Rank::kStreamPools};
  std::unordered_map<CUmemoryPool, PoolRef> pools_ GUARDED_BY(mutex_);
  std::uint64_t charged_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  // Running totals of bytes. The bytes are released in the order in which they were orphaned.
  std::uint64_t orphaned_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t released_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t called_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};  // the part of charged_ for calls in flight
  std::uint64_t recorded_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::atomic<bool> graphs_allocate_{false};
  std::atomic<std::uint64_t> freed_in_order_[ledger::kMaxDevices] = {};  // bytes of the blocks, plus one step for each
  std::uint64_t passed_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace ration::policy
