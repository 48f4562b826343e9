// Mode async: one memory pool of the driver's for each device, from which synchronous allocations come on a private
// stream; each is handed out when it is complete there. Freed blocks go back on that stream once the device is through
// with them (deferred_frees.h), so the driver may reuse them at once. Layer: policy/driver_pools.
// Threads: any; no driver call under the lock. Owns: the pools, for the process's life, and the streams.
//
// A pool is charged as any pool of the driver's (stream_pools.h): by what it reserves. It keeps what is freed up to its
// release threshold, the limit. A block ends with the program's context although the driver's pool knows none: it is
// then freed through another context, or through the next one if there is none.
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
  // `deterministic`: no block is reused because of an order that the driver found or made by itself.
  AsyncPools(const Parts &parts, bool deterministic) : parts_(parts), deterministic_(deterministic) {}
  ~AsyncPools();
  AsyncPools(const AsyncPools &) = delete;
  AsyncPools &operator=(const AsyncPools &) = delete;

  // Whether this driver has the functions for it.
  static bool possible();
  // Whether this device has memory pools at all.
  static bool supported_on(CUdevice device);

  // The device's pool, made at the first call; nullptr if the device has none, which is logged once.
  StreamPools::PoolRef pool_on(int device);
  bool owns(const StreamPools::PoolRef &pool) const;
  // Design: design/modes.md#hidden-pool
  bool owns_handle(std::uintptr_t handle) const;  // as the driver writes it

  // A complete block of the device's pool for `context`. If the driver has no memory, one last try follows one more
  // synchronise of the stream, for which the program's work never waits.
  CUresult take(int device, const ContextRef &context, std::uint64_t bytes, CUdeviceptr *address);
  CUresult put_back(const ContextRef &context, CUdeviceptr address);
  // A clean block of that size which the driver did not get; 0: there is none. Where the pool may not grow and nothing
  // keeps it from growing, what goes back to it could not be had again.
  CUdeviceptr take_retained(const StreamPools::PoolRef &pool, std::uint64_t bytes) noexcept;
  // Gives them back to the driver. False: none went; what the driver did not take stays retained.
  bool release_retained(int device) noexcept;
  // The same where the pool could serve them again by now.
  void release_needless(int device) noexcept;
  // Whether the driver caps the pool, so that it cannot exceed the limit.
  bool is_capped(int device) const { return on(device).capped; }
  // Whether the driver had no memory for the latest block.
  bool was_full(int device) const { return on(device).full.load(std::memory_order_relaxed); }
  // Reserved by the pool and in no block.
  std::uint64_t idle_bytes(int device) const { return on(device).pool == nullptr ? 0 : on(device).pool->idle_bytes(); }
  // In blocks, those included that the program has freed and the driver has not got.
  std::uint64_t used_bytes(int device) const { return on(device).pool == nullptr ? 0 : on(device).pool->used_bytes(); }
  std::uint64_t retained_bytes(int device) const { return on(device).frees.retained_bytes(); }
  // What the program has freed in stream order since the pool last counted none of it as used.
  std::uint64_t ordered_bytes(int device) const { return on(device).ordered.load(std::memory_order_relaxed); }
  // The idle ones, with what is freed and not back in the pool yet.
  std::uint64_t free_bytes(int device) const {
    return idle_bytes(device) + deferred_bytes(device) + retained_bytes(device);
  }

  // A block that the program has freed. False: the host has no memory; nothing changed.
  bool defer(int device, const DeferredBlock &block) noexcept;
  std::uint64_t deferred_bytes(int device) const { return on(device).frees.bytes(); }
  // A block that the program has freed in stream order.
  void freed_in_order(int device, std::uint64_t bytes) noexcept;
  // Lets the pool take note of those whose streams have reached their frees. Waits for no work of the program's.
  void note_ordered(int device, const ContextRef &context);
  bool covers(CUdeviceptr address);
  // Gives back what is clean; poll_if_due() only if enough is open, or the latest was some time ago. Neither waits.
  void collect(int device) noexcept;
  void poll_if_due(int device) noexcept;
  // Gives back to the pool what is clean, having waited for some if nothing was; returns at once if returned() is no
  // longer `seen`. False: there is nothing, or it cannot be known when.
  bool reclaim(const char *api, int device, std::uint64_t seen) noexcept;
  std::uint64_t returned(int device) const { return on(device).frees.reclaimed(); }
  CUresult drain(const char *api, int device) noexcept;
  // Waits as the driver's own free does: for what was submitted to `context` before.
  void wait_for_context(const char *api, int device, const Context &context) noexcept;
  // Before work is submitted, as BlockPools'.
  bool has_unsealed_frees() const;
  void seal_frees() noexcept;
  // The program synchronises: what was freed before gets its fence now.
  void before_synchronise() noexcept;

  // True once for each device: the caller preallocates.
  bool begin_preallocation(int device);
  // Makes the pool reserve so much, by one block that goes back at once.
  CUresult preallocate(int device, const ContextRef &context, std::uint64_t bytes);

  // Contexts on device `from` may use memory of device `to` from now on, or one of them no longer.
  void peer_changed(int from, int to, bool enabled) noexcept;
  // Its stream ended with it.
  void forget(const ContextRef &context) noexcept;

  Contexts &contexts() { return parts_.contexts; }

 private:
  struct DevicePool {
    DevicePool(FenceTracker &fences, int device) : frees(fences, device) {}
    StreamPools::PoolRef pool;  // nullptr: the device has none
    bool capped = false;
    std::atomic<bool> preallocated{false};
    std::atomic<bool> full{false};               // the driver had no memory for the latest block
    std::atomic<std::uint64_t> collected_ns{0};  // when the latest collect() began
    std::atomic<std::uint64_t> ordered{0};       // bytes, as ordered_bytes()
    DeferredFrees frees;
  };
  // That of a device for which none was made holds nothing.
  DevicePool &on(int device) const {
    DevicePool *const made = device_pools_[device].load(std::memory_order_acquire);
    return made != nullptr ? *made : *none_;
  }
  DevicePool &made_on(int device);
  void make(DevicePool &device_pool, int device);
  bool set_up(CUmemoryPool pool, int device);
  CUstream stream_of(const ContextRef &context, CUresult &error);
  // Calls act(stream) with the context's, in relaxed mode.
  CUresult on_stream(const ContextRef &context, FunctionRef<CUresult(CUstream)> act);
  bool serves_again(const DevicePool &device_pool);
  // True: some of them went back, or are retained; the others are kept.
  bool give_back(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept;
  // Leaves what no context could free.
  bool return_some(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept;
  // By a call in that context, which is pinned. Leaves what the driver did not take. True: it took some.
  bool free_through(const ContextRef &context, DevicePool &device_pool, DeferredFrees::Items &blocks) noexcept;
  // Design: design/modes.md#ended-contexts
  bool free_elsewhere(DevicePool &device_pool, DeferredFrees::Items &blocks) noexcept;
  void record_wait(const char *api, int device, const DeferredFrees::Cleaned &cleaned, std::uint64_t start_ns);

  const Parts parts_;
  const bool deterministic_;
  const std::unique_ptr<DevicePool> none_ = std::make_unique<DevicePool>(parts_.fences, FenceTracker::kAllDevices);
  ReentrantGate::Owner making_{nullptr};  // one thread makes a pool at a time
  std::atomic<DevicePool *> device_pools_[ledger::kMaxDevices] = {};
  std::atomic<bool> in_use_{false};  // something was deferred
  RankedMutex mutex_{Rank::kAsyncPools};
  std::unordered_map<const Context *, CUstream> streams_ GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, int> peers_ GUARDED_BY(mutex_);  // from << 32 | to → contexts
};

}  // namespace ration::policy
