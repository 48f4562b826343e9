// What the driver's own memory pools (cuMemAllocAsync) hold of each device: charged by what they reserve, not by what
// is live in them, because retained memory is what other processes lack.
// Layer: policy/driver_pools. Threads: any; no driver call under the lock.
//
// A call reserves an upper bound first and counts as in flight until the driver has answered. The charge of a pool may
// then fall to the driver's figure of reserved bytes, plus the bounds of all calls that were in flight at any time
// since that query. Frees only lower the figure, so the sum is never too low. A call that relies on its pool's cap may
// let the pool grow to that cap, whatever is reserved for the call: the cap counts as its bound.
//
// What graphs allocate is one more such pool of each device, with questions and a trim of its own: see driver_pool.h.
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
    std::uint64_t charged = 0;  // reserved for it
    std::uint64_t growth = 0;   // by which it may let the pool grow
    bool to_cap = false;
    bool shares = false;

    // Of what it may take, what it relies on: it is in the pool already.
    std::uint64_t relied() const { return shares && growth > charged ? growth - charged : 0; }
  };

  StreamPools(ledger::Ledger &ledger, events::Journal &journal) : ledger_(ledger), journal_(journal) {}

  // The driver's pools serve whole units of 512 bytes.
  static constexpr std::uint64_t kUnitBytes = 512;
  static constexpr std::uint64_t whole_units(std::uint64_t bytes) {
    return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  }
  // Whether this driver reports what a pool reserves; else blocks are charged one by one.
  static bool can_tell();
  // The step by which a pool grows is not documented: this is assumed until a pool was seen to grow. One that grows by
  // more is held to the limit after the call. What was seen may be less than a step, where the driver keeps odd sizes
  // after a trim: no bound is less than the largest growth so far, up to the assumed step. A cap is rounded up to whole
  // steps (an H200, driver 580.159).
  static constexpr std::uint64_t kLargestStep = 32U << 20U;
  // The largest cap that keeps a pool within `bytes`; 0: none does.
  static std::uint64_t cap_within(std::uint64_t bytes) { return bytes / kLargestStep * kLargestStep; }
  // Whether its pools can have a cap (CUmemPoolProps::maxSize).
  static bool have_caps();

  // A pool was created with these properties.
  void created(CUmemoryPool handle, const CUmemPoolProps &properties) noexcept;
  // The pool of a handle; one whose creation was not seen belongs to `device`. Throws bad_alloc.
  PoolRef find(CUmemoryPool handle, int device);
  PoolRef known(CUmemoryPool handle);  // nullptr: no allocation came from it
  // What the graphs of a device share. Throws bad_alloc.
  PoolRef of_graphs(int device, CUdevice handle);
  PoolRef known_of_graphs(int device);  // nullptr: no graph of the device allocated
  static bool can_tell_of_graphs();     // whether this driver reports what graphs reserve
  // A graph of this process may allocate: an allocation node was seen.
  void note_graph_allocation() noexcept { graphs_allocate_.store(true, std::memory_order_relaxed); }
  bool graphs_allocate() const { return graphs_allocate_.load(std::memory_order_relaxed); }
  // Around the program's call that destroys it: waits for queries in flight and lets no other begin. A destroyed pool
  // stays charged while blocks live in it, and then until the device has reached their frees: an orphan.
  PoolRef begin_destroy(CUmemoryPool handle);
  // True: it became an orphan.
  bool finish_destroy(const PoolRef &pool, bool success) noexcept;

  // The most that the pool may reserve for a block.
  std::uint64_t upper_bound(const Pool &pool, std::uint64_t bytes);
  // Around the driver's call. The caller reserves `bound` in the device's account before, and releases what finish()
  // answers.
  Call begin(Pool &pool, std::uint64_t bound);
  // Reserve in the device's account too; finish_and_release() releases what finish() would have answered. Both change
  // with the charge of the pool at one moment: to whoever compares the two, nothing of this call is other memory.
  std::optional<Call> reserve(Pool &pool, std::uint64_t bound, ledger::Effort effort);
  // For a launch that may take `bound`, most of which is in the pool already: nothing is reserved for it yet, but no
  // other call's bound is released meanwhile.
  Call share(Pool &pool, std::uint64_t bound);
  // What other calls rely on.
  std::uint64_t relied_by_others(const Pool &pool, const Call &call);
  std::uint64_t latest_figure(const Pool &pool);  // of the driver, of what the pool reserves
  // Reserves more for it. False: it does not fit.
  bool extend(Pool &pool, Call &call, std::uint64_t bytes);
  // All that the pool may grow by, for a call that only its cap keeps within the limit. nullopt: not so much is left,
  // because other memory is charged.
  std::optional<Call> reserve_to_cap(Pool &pool);
  void finish_and_release(Pool &pool, const Call &call, bool success);
  // Answers how much of what was reserved for it the caller releases now: nothing of a call that succeeded, nor of one
  // that failed while another relies on the cap. The next reconcile() releases that.
  std::uint64_t finish(Pool &pool, const Call &call, bool success);
  // Lowers the charge to the driver's figure. Answers how much more the pool holds than was reserved for it.
  std::uint64_t reconcile(const char *api, Pool &pool) noexcept;
  // The same, with what is missing charged, whatever the limit: the pool has it. True: some was.
  bool charge_missing(const char *api, Pool &pool) noexcept;
  // The caller has reserved that much more.
  void add(const char *api, Pool &pool, std::uint64_t bytes);
  // A block that the pool never got back is in use again.
  void block_begun(Pool &pool) noexcept;
  // A block ended, in stream order or at once. True: its pool became an orphan.
  bool block_ended(Pool &pool, std::uint64_t bytes = 0) noexcept;

  // Trims every pool of a device, but for `kept`. True: less is charged than before.
  bool trim(const char *api, int device, const Pool *kept = nullptr) noexcept;
  // The most that a trim may release after a wait for the device: what its pools hold beyond their live blocks, as far
  // as the driver reports, but no more than the steps around what was freed in stream order since the last such wait;
  // and orphans.
  std::uint64_t idle(int device) noexcept;
  // A block of the device ended in stream order.
  void freed_in_order(int device, std::uint64_t bytes);
  // A mark of what was freed in stream order until now; the device has finished what was submitted before that mark.
  std::uint64_t order_mark(int device) const { return freed_in_order_[device].load(); }
  void note_passed(int device, std::uint64_t mark);
  // Bytes that orphans ever held: a mark for release_orphans().
  std::uint64_t orphaned(int device);
  bool has_orphans(int device);
  // Releases the orphans up to a mark of orphaned(): the device has finished what was submitted before it.
  void release_orphans(const char *api, int device, std::uint64_t up_to) noexcept;
  void reconcile_all(const char *api, int device) noexcept;
  // Trims one pool by `bytes`, where it has that much free; UINT64_MAX: by all that is free. True: less is charged than
  // before.
  bool trim_by(const char *api, Pool &pool, std::uint64_t bytes) noexcept;
  // The pools of a device, one after the other, until nothing is missing any more.
  void trim_by(const char *api, int device, FunctionRef<std::uint64_t()> missing) noexcept;
  bool can_reach_cap(const Pool &pool);  // what is left is all that its cap leaves it, so nothing keeps it from growing

 private:
  // A query about a pool that the program may be destroying. False: it is, and the driver must not be asked about it.
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
  // The driver's figure of what a pool reserves, and what had completed before that query.
  struct Seen {
    std::uint64_t reserved;
    std::uint64_t completed_before;
  };
  std::uint64_t beyond(const Pool &pool, const Seen &seen) REQUIRES(mutex_);
  // Releases what excess() says, under the lock: at most what it said before it was logged. take(bytes) is under the
  // lock, too.
  void release(const char *api, int device, FunctionRef<std::uint64_t()> excess, FunctionRef<void(std::uint64_t)> take);
  void note_growth(Pool &pool, std::uint64_t reserved) REQUIRES(mutex_);
  PoolRef add_pool(std::shared_ptr<Pool> made);
  std::vector<PoolRef> pools_of(int device);
  bool orphan(Pool &pool) REQUIRES(mutex_);
  Call start(Pool &pool, const Call &call) REQUIRES(mutex_);
  std::uint64_t end(Pool &pool, const Call &call, bool success) REQUIRES(mutex_);
  // What graphs share is trimmed as a whole.
  void trim_one(const char *api, Pool &pool, std::uint64_t bytes) noexcept;
  bool leaves_its_cap(const Pool &pool, std::uint64_t left) REQUIRES(mutex_);
  // `falling`: of what is charged, what is about to be released.
  void record(const char *api, int device, std::uint64_t falling = 0) noexcept;

  ledger::Ledger &ledger_;
  events::Journal &journal_;
  ReentrantGate::Owner recording_{nullptr};  // records are in the order of what they say
  RankedMutex mutex_{Rank::kStreamPools};
  std::unordered_map<CUmemoryPool, PoolRef> pools_ GUARDED_BY(mutex_);
  std::uint64_t charged_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  // Running totals: the first bytes to be orphaned are the first to be released.
  std::uint64_t orphaned_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t released_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t called_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};  // of charged_, for calls in flight
  std::uint64_t recorded_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::atomic<bool> graphs_allocate_{false};
  std::atomic<std::uint64_t> freed_in_order_[ledger::kMaxDevices] = {};  // bytes, each block with a step around it
  std::uint64_t passed_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace ration::policy
