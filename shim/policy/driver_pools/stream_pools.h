// What the driver's own memory pools (cuMemAllocAsync) hold of each device: charged by what they reserve, not by what
// is live in them, because retention is what starves neighbours. Layer: policy. Threads: any; no driver call under the
// lock.
//
// A call reserves an upper bound first and is counted as in flight until the driver answered. What a pool is charged
// with may then fall to what the driver says that it reserves, plus the bounds of all calls that were in flight at any
// moment since it was asked: frees only lower the figure, so that sum is never too low.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/lock.h"
#include "driver/functions.h"
#include "events/journal.h"
#include "ledger/ledger.h"

namespace ration::policy {

class StreamPools {
 public:
  struct Pool {
    Pool(CUmemoryPool its_handle, int its_device) : handle(its_handle), device(its_device) {}
    const CUmemoryPool handle;
    const int device;  // ordinal; -1: its memory is the host's

   private:
    friend class StreamPools;
    std::uint64_t charged_ = 0;    // with the bounds of what is in flight
    std::uint64_t in_flight_ = 0;  // bounds
    std::uint64_t completed_ = 0;  // bounds of all calls that ever succeeded
    std::uint64_t reserved_ = 0;   // as the driver said last
    std::uint64_t step_ = 0;       // by which it was seen to grow; 0: it was not
    std::uint64_t live_ = 0;       // blocks
    int asking_ = 0;               // threads that ask the driver about it of their own accord
    bool destroyed_ = false;       // or about to be: its handle may mean nothing any more
  };
  using PoolRef = std::shared_ptr<Pool>;

  StreamPools(ledger::Ledger &ledger, events::Journal &journal) : ledger_(ledger), journal_(journal) {}

  // Whether this driver says what a pool reserves; where it does not, blocks are charged one by one.
  static bool can_tell();

  // A pool that the program made, where it said.
  void created(CUmemoryPool handle, const CUmemLocation &location) noexcept;
  // The pool of a handle; one that nobody saw being made is `device`'s. Throws bad_alloc.
  PoolRef find(CUmemoryPool handle, int device);
  PoolRef known(CUmemoryPool handle);  // nullptr: nothing came from it
  // Around the program's call that destroys it: waits until nobody asks about it, and lets nobody begin to. What was
  // destroyed stays charged while blocks live in it, and then until the device is through with their frees: an orphan.
  PoolRef begin_destroy(CUmemoryPool handle);
  void finish_destroy(const PoolRef &pool, bool success) noexcept;

  // What the pool may come to take for a block.
  std::uint64_t upper_bound(const Pool &pool, std::uint64_t bytes);
  // Around the driver's call; `bound` is reserved in the device's account before, and released by the caller where the
  // call fails.
  void begin(Pool &pool, std::uint64_t bound);
  void finish(Pool &pool, std::uint64_t bound, bool success);
  // Charges what the driver says. Not 0: it holds so much more than was reserved for it.
  std::uint64_t settle(const char *api, Pool &pool) noexcept;
  // So much more was reserved.
  void add(const char *api, Pool &pool, std::uint64_t bytes);
  // A block ended, in stream order or at once.
  void block_ended(Pool &pool) noexcept;

  // Has every pool of a device give back what it can. True: less is charged than before.
  bool trim(const char *api, int device) noexcept;
  // What one pool, which nobody destroys, holds beyond what is live in it, as the driver says; 0: it does not.
  static std::uint64_t idle_bytes(const Pool &pool);
  // Whether a pool holds more than is live in it, as far as the driver says.
  bool retains(int device) noexcept;
  // How many bytes of orphans there ever were; all of them that were there before.
  std::uint64_t orphaned(int device);
  bool has_orphans(int device);
  // Those up to a figure of orphaned() are the device's again: it is through with what was submitted before that.
  void release_orphans(const char *api, int device, std::uint64_t up_to) noexcept;
  void settle_all(const char *api, int device) noexcept;
  // Has one pool give back so much, where it has as much that is free.
  void trim_by(const char *api, Pool &pool, std::uint64_t bytes) noexcept;
  // Whether nothing else is charged on its device but `bytes`.
  bool is_alone(const Pool &pool, std::uint64_t bytes);

 private:
  // A look at a pool that the program may be destroying. False: it is; the driver must not be asked about it.
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
  std::vector<PoolRef> pools_of(int device);
  void orphan(Pool &pool) REQUIRES(mutex_);
  void record(const char *api, int device) noexcept;

  ledger::Ledger &ledger_;
  events::Journal &journal_;
  RankedMutex mutex_{Rank::kStreamPools};
  std::unordered_map<CUmemoryPool, PoolRef> pools_ GUARDED_BY(mutex_);
  std::uint64_t charged_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  // Bytes, ever: the first ones to be orphaned are the first ones to be released.
  std::uint64_t orphaned_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t released_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
  std::uint64_t recorded_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace ration::policy
