// The state that the pools of one device share: the bytes held, the quarantine, and the turn to preallocate.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call. Owns: the device's quarantine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "events/journal.h"
#include "ledger/ledger.h"
#include "policy/block_pool/context_pools.h"
#include "policy/block_pool/pool_bounds.h"
#include "policy/block_pool/preallocation_turn.h"
#include "policy/block_pool/quarantine.h"
#include "policy/contexts/contexts.h"
#include "policy/contexts/fence_tracker.h"
#include "policy/devices/devices.h"

namespace ration::policy {

// The parts of the program with which all pools of the process work.
struct PoolParts {
  Devices &devices;
  ledger::Ledger &ledger;
  events::Journal &journal;
  Contexts &contexts;
  FenceTracker &fences;
  ContextPools &context_pools;
};

enum class TakeOutcome { taken, over_limit, over_group_limit, device_full, failed };

class DevicePool {
 public:
  DevicePool(const PoolParts &parts, int ordinal);

  const int device;
  ledger::Account &account;
  const PoolBounds bounds;
  Quarantine quarantine;
  PreallocationTurn turn;
  ReentrantGate::Owner making{nullptr};  // one thread at a time creates a context's pool

  // The contexts that have a pool on this device. Throws bad_alloc, as do the three sums below, which take each pool's
  // lock.
  std::vector<ContextRef> contexts() const;
  // The bytes in holes.
  std::uint64_t clean_bytes() const;
  // The bytes that the pools hold but that are in no live block.
  std::uint64_t unused_bytes() const;
  // Whether `bytes` would fit under the limit if the pools of other contexts held only live blocks.
  bool holds_elsewhere(const Context *caller, std::uint64_t bytes) const;
  // The bytes in live blocks, in every mode.
  std::uint64_t used() const { return parts_.journal.live_bytes(device); }

  // Reserves `bytes`, then runs `call`, which asks the driver for them. `error` is set if the outcome is `failed`.
  TakeOutcome obtain(std::uint64_t bytes, ledger::Effort effort, ledger::Transit &transit, CUresult &error,
                     FunctionRef<CUresult()> call);
  // Notes that the pools now hold this many more, or fewer, bytes.
  void note_taken(std::uint64_t bytes);
  void note_gone(std::uint64_t bytes) noexcept;
  std::uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }
  // Whether the pools have neither taken nor returned memory since the driver last had none for them.
  bool is_full() const { return full_.load(std::memory_order_relaxed); }

  // Called after a free. Waits, as the driver's free would, if neither clean memory nor growth could serve that size
  // again. Also waits if more than half of the limit, or more than the quarantine's cap, is freed and not clean.
  // Design: design/quarantine.md#waiting-in-the-free
  void wait_after_free(const char *api, const ContextRef &owner, std::uint64_t bytes) noexcept;
  // Waits until nothing is in quarantine, but no longer than `most_ns`, because the device's work may itself wait for
  // this call to return.
  void drain_briefly(const char *api, std::uint64_t most_ns);
  void record_wait(const char *api, const char *how, const Quarantine::Cleaned &cleaned, std::uint64_t start_ns) const;

 private:
  void note_size();
  bool can_grow(std::uint64_t block_bytes) const;
  bool has_much_freed();

  const PoolParts parts_;
  std::atomic<std::uint64_t> held_bytes_{0};
  std::atomic<bool> full_{false};
};

// The DevicePool of each device.
class DevicePools {
 public:
  explicit DevicePools(const PoolParts &parts) : parts_(parts) {}
  ~DevicePools();
  DevicePools(const DevicePools &) = delete;
  DevicePools &operator=(const DevicePools &) = delete;

  // Throws bad_alloc.
  DevicePool &on(int device);
  // nullptr if on() has not been called for the device yet.
  DevicePool *known(int device) { return devices_[device].load(std::memory_order_acquire); }
  template <class Visit>
  void each(const Visit &visit) {
    for (int device = 0, end = end_.load(std::memory_order_relaxed); device < end; ++device) {
      if (DevicePool *pool = known(device)) {
        visit(*pool);
      }
    }
  }

  // Called before work is submitted. has_unsealed_frees(): whether a free most likely has no fence yet. seal_frees():
  // gives such frees a fence, unless so many fences were taken recently that another one would cost too much.
  bool has_unsealed_frees() noexcept;
  void seal_frees() noexcept;
  // Called before the program synchronises. Returns the number of a fence, which has passed if the driver's call
  // succeeds.
  std::uint64_t before_synchronise() noexcept;

  // The next number for a slab, granule or address range in the log.
  std::uint64_t next_number() { return last_number_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  const PoolParts parts_;
  std::atomic<DevicePool *> devices_[ledger::kMaxDevices] = {};
  std::atomic<int> end_{0};  // one past the last known device
  std::atomic<std::uint64_t> last_number_{0};
};

}  // namespace ration::policy
