// Mode async: one memory pool of the driver for each device. A synchronous allocation is made from this pool on a
// private stream, and is handed out once that stream has completed it. A freed block is returned on that stream once
// the device has finished using it (deferred_frees.h), so the driver may reuse it at once. Layer: policy/driver_pools.
// Threads: any; no driver call under the lock. Owns: the pools, until the process ends, and the streams.
//
// A pool is charged for what it reserves, like any pool of the driver (stream_pools.h). It keeps freed memory up to its
// release threshold, which is the limit. To the program, a block ends with its context, although the driver's pool does
// not depend on contexts. A block whose context has ended is freed through another one, or the next one to be created.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/function_ref.h"
#include "base/lock.h"
#include "policy/devices/devices.h"
#include "policy/driver_pools/deferred_frees.h"
#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {

class AsyncPools {
 public:
  struct Parts {
    Devices &devices;
    Contexts &contexts;
    ledger::Ledger &ledger;
    events::Journal &journal;
    StreamPools &stream_pools;
    FenceTracker &fences;
  };
  // `deterministic`: the pools do not reuse a block merely because the driver saw that its free has run, or inserted a
  // dependency.
  AsyncPools(const Parts &parts, bool deterministic) : parts_(parts), deterministic_(deterministic) {}
  ~AsyncPools();
  AsyncPools(const AsyncPools &) = delete;
  AsyncPools &operator=(const AsyncPools &) = delete;

  // Whether this driver has the functions that mode async needs.
  static bool possible();
  // Whether this device has memory pools at all.
  static bool supported_on(CUdevice device);

  // The device's pool, created at the first call; nullptr if the device cannot have one, which is logged once.
  StreamPools::PoolRef pool_on(int device);
  bool owns(const StreamPools::PoolRef &pool) const;
  // Design: design/modes.md#hidden-pool
  bool owns_handle(std::uintptr_t handle) const;  // in the form in which the driver writes it

  // Takes a block of the device's pool for `context`, and waits until its allocation is complete. If the driver has no
  // memory, synchronises that stream once more (no work of the program waits for it) and tries a last time.
  CUresult take(int device, const ContextRef &context, std::uint64_t bytes, CUdeviceptr *address);
  CUresult put_back(const ContextRef &context, CUdeviceptr address);
  // Takes a retained clean block of that size; 0 if there is none. Blocks are retained if the limit leaves the pool no
  // room to grow and no cap stops its growth, because memory returned to such a pool could not be allocated again.
  CUdeviceptr take_retained(const StreamPools::PoolRef &pool, std::uint64_t bytes) noexcept;
  // Returns the retained blocks to the driver; those that it does not accept stay retained. Returns false if none was
  // accepted.
  bool release_retained(int device) noexcept;
  // Returns the retained blocks if their memory could by now be allocated from the pool again.
  void release_needless(int device) noexcept;
  // Whether the driver caps the pool, so that it cannot exceed the limit.
  bool is_capped(int device) const { return on(device).capped; }
  // Whether the driver had no memory for the latest block.
  bool was_full(int device) const { return on(device).full.load(std::memory_order_relaxed); }
  // The bytes that the pool reserves but that are in no block.
  std::uint64_t idle_bytes(int device) const { return on(device).pool == nullptr ? 0 : on(device).pool->idle_bytes(); }
  // The bytes in blocks, including blocks that the program has freed but that have not been returned to the driver yet.
  std::uint64_t used_bytes(int device) const { return on(device).pool == nullptr ? 0 : on(device).pool->used_bytes(); }
  std::uint64_t retained_bytes(int device) const { return on(device).frees.retained_bytes(); }
  // Bytes freed in stream order that the pool may still count as used.
  std::uint64_t ordered_bytes(int device) const { return on(device).ordered.load(std::memory_order_relaxed); }
  // The idle bytes, plus the bytes that are freed but not back in the pool yet.
  std::uint64_t free_bytes(int device) const {
    return idle_bytes(device) + deferred_bytes(device) + retained_bytes(device);
  }

  // Defers the return of a block that the program has freed. False, with nothing changed, if host memory has run out.
  bool defer(int device, const DeferredBlock &block) noexcept;
  std::uint64_t deferred_bytes(int device) const { return on(device).frees.bytes(); }
  // Notes that the program has freed a block in stream order.
  void freed_in_order(int device, std::uint64_t bytes) noexcept;
  // Makes the pool note which stream-ordered frees their streams have reached. Waits for no work of the program.
  void note_ordered(int device, const ContextRef &context);
  bool covers(CUdeviceptr address);
  // Returns clean blocks to the pool. poll_if_due() does so only if enough frees are open or the latest collect() was
  // some time ago. Neither function waits.
  void collect(int device) noexcept;
  void poll_if_due(int device) noexcept;
  // Returns clean blocks to the pool; if there are none, waits for some. Stops at once if returned() is no longer
  // `seen`. Returns false if there is nothing to return, or if it cannot be known when a block will be clean.
  bool reclaim(const char *api, int device, std::uint64_t seen) noexcept;
  std::uint64_t returned(int device) const { return on(device).frees.reclaimed(); }
  CUresult drain(const char *api, int device) noexcept;
  // Waits, as the driver's own free does, for the work that was submitted to `context` before.
  void wait_for_context(const char *api, int device, const Context &context) noexcept;
  // To be called before work is submitted; as in DevicePools.
  bool has_unsealed_frees() const;
  void seal_frees() noexcept;
  // Called when the program synchronises. Blocks that were freed before that get their fence now.
  void before_synchronise() noexcept;

  // Returns true once for each device; the caller then preallocates.
  bool begin_preallocation(int device);
  // Makes the pool reserve `bytes`, by allocating one block and freeing it at once.
  CUresult preallocate(int device, const ContextRef &context, std::uint64_t bytes);

  // Notes that a context of device `from` may now use memory of device `to`, or no longer if `enabled` is false.
  void peer_changed(int from, int to, bool enabled) noexcept;
  // Forgets the stream of a context, which ended with the context.
  void forget(const ContextRef &context) noexcept;

  Contexts &contexts() { return parts_.contexts; }

 private:
  struct DevicePool {
    DevicePool(FenceTracker &fences, int device) : frees(fences, device) {}
    StreamPools::PoolRef pool;  // nullptr: the device has no pool
    bool capped = false;
    std::atomic<bool> preallocated{false};
    std::atomic<bool> full{false};               // the driver had no memory for the latest block
    std::atomic<std::uint64_t> collected_ns{0};  // when the latest collect() began
    std::atomic<std::uint64_t> ordered{0};       // see ordered_bytes()
    DeferredFrees frees;
  };
  // The record of a device's pool; an empty record if no pool was created.
  DevicePool &on(int device) const {
    DevicePool *const made = device_pools_[device].load(std::memory_order_acquire);
    return made != nullptr ? *made : *none_;
  }
  DevicePool &made_on(int device);
  void make(DevicePool &device_pool, int device);
  bool set_up(CUmemoryPool pool, int device);
  CUstream stream_of(const ContextRef &context, CUresult &error);
  // Calls act(stream) with the context's stream, in relaxed capture mode.
  CUresult on_stream(const ContextRef &context, FunctionRef<CUresult(CUstream)> act);
  bool serves_again(const DevicePool &device_pool);
  // Returns true if some blocks were returned or retained. The others are kept.
  bool give_back(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept;
  // Leaves in `clean` the blocks that no context could free. Returns true if some blocks were returned.
  bool return_some(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept;
  // Frees blocks by calls in that context, which is pinned. Leaves in `blocks` those that the driver did not free.
  // Returns true if it freed some.
  bool free_through(const ContextRef &context, DevicePool &device_pool, DeferredFrees::Items &blocks) noexcept;
  // Design: design/modes.md#ended-contexts
  bool free_elsewhere(DevicePool &device_pool, DeferredFrees::Items &blocks) noexcept;
  void record_wait(const char *api, int device, const DeferredFrees::Cleaned &cleaned, std::uint64_t start_ns);

  const Parts parts_;
  const bool deterministic_;
  const std::unique_ptr<DevicePool> none_ = std::make_unique<DevicePool>(parts_.fences, FenceTracker::kAllDevices);
  ReentrantGate::Owner making_{nullptr};  // one thread at a time creates a pool
  std::atomic<DevicePool *> device_pools_[ledger::kMaxDevices] = {};
  std::atomic<bool> in_use_{false};  // something was deferred
  RankedMutex mutex_{Rank::kAsyncPools};
  std::unordered_map<const Context *, CUstream> streams_ GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, int> peers_ GUARDED_BY(mutex_);  // from << 32 | to → number of contexts
};

}  // namespace ration::policy
