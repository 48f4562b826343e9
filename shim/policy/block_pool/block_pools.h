// Mode pool: blocks of the program from the pools of its contexts, and everything that happens to those.
// Layer: policy. Threads: any; no lock is held across a driver call. Owns: each device's quarantine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/journal.h"
#include "ledger/ledger.h"
#include "policy/block_pool/context_pool.h"
#include "policy/block_pool/fast_path.h"
#include "policy/block_pool/ipc_exporter.h"
#include "policy/block_pool/quarantine.h"
#include "policy/block_pool/room.h"
#include "policy/block_pool/slab_directory.h"
#include "policy/contexts/captures.h"
#include "policy/contexts/contexts.h"
#include "policy/contexts/fence_tracker.h"
#include "policy/devices/devices.h"
#include "policy/devices/request.h"

namespace ration::policy {

class BlockPools {
 public:
  BlockPools(Devices &devices, ledger::Ledger &ledger, events::Journal &journal, Contexts &contexts,
             FenceTracker &fences, FastPaths &fast_paths, IpcExporter &exports, Room &room, bool synchronous_free)
      : devices_(devices),
        ledger_(ledger),
        journal_(journal),
        contexts_(contexts),
        fences_(fences),
        fast_paths_(fast_paths),
        exports_(exports),
        room_(room),
        synchronous_free_(synchronous_free) {}

  ~BlockPools();
  BlockPools(const BlockPools &) = delete;
  BlockPools &operator=(const BlockPools &) = delete;

  // Whether this driver lets a freed block ever be used again.
  static bool possible() { return FenceTracker::can_tell(); }

  // The short way (hit_lanes.h), where it is open and leads there; false: nothing happened. It touches what the fast
  // path's lock guards and the totals, and asks the driver for nothing but the current context; a free that was due
  // looks after the quarantine besides. What the ledger must be told of takes the long way.
  bool allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept;
  bool free_hit(std::uint64_t address) noexcept;

  // A block of `request.upper_bound` bytes. Where it was denied for want of memory, `denied` says why.
  CUresult allocate(const Request &request, const Contexts::Current &where, events::Via via, CUdeviceptr *address,
                    std::optional<events::Reason> &denied);

  // The context whose slab is around `address`, or nullptr: what happens to that address is not ours to say.
  ContextRef owner_of(std::uint64_t address) { return slabs_.find(address); }
  // REQUIRES: `owner` is the answer of owner_of. Anything but the start of a live block: INVALID_VALUE.
  CUresult free(const char *api, std::uint64_t address, const ContextRef &owner);
  CUresult free_in_stream(const char *api, std::uint64_t address, CUstream stream, const ContextRef &owner);
  // What a free of the driver's own would be told on this thread: without a context, or after the driver's end, its
  // refusal.
  CUresult state_of_caller();
  std::optional<pool::Block> block_at(std::uint64_t address, const ContextRef &owner);
  pool::SharedPool &blocks_of(const ContextRef &owner);

  // A handle by which other processes can open the live block around `address`, and only that (exports.h). Where there
  // can be none, `refused` and why. REQUIRES: `owner` is the answer of owner_of.
  CUresult share(std::uint64_t address, const ContextRef &owner, CUipcMemHandle *handle, std::string &refused);
  // Takes back what is free and was open elsewhere; at most so many looks.
  static constexpr std::size_t kFewKept = 8;
  void settle_kept(std::size_t most = SIZE_MAX) noexcept;

  // A context that ends takes its pool along; begin before the driver's call, then one of the two.
  void begin_end(const ContextRef &context) noexcept {
    context->close_to_hits();
    slabs_.begin_end(context);
  }
  void cancel_end(const ContextRef &context) noexcept { slabs_.cancel_end(context); }
  void finish_end(const char *api, const ContextRef &context) noexcept;

  // Free in the pools of a device, clean or not yet.
  std::uint64_t free_bytes(int device);
  // What the pools of a device hold without a live block in it.
  std::uint64_t reclaimable(int device);
  // Returns wholly free slabs to the driver. False: there were none, or the driver refused.
  bool give_back_slabs(const char *api, int device) noexcept;
  // Whether another thread is taking a slab of the device or giving one back: what is refused now may fit then.
  bool is_changing(int device);
  // Whether `bytes` would fit under the limit but for what lies free in pools that the caller cannot use.
  bool holds_elsewhere(int device, const Context *caller, std::uint64_t bytes);
  // What an oom record says of the pools; `of` is the context that asked.
  void explain(events::Oom &oom, const Context *of);
  // Figures of a device for others to see; the others only where they have changed enough (ledger::Account).
  void tell(int device) noexcept;
  void tell_changes(int device) noexcept {
    if (ledger_.account(device).is_worth_telling(used(device))) {
      tell(device);
    }
  }
  std::uint64_t used(int device) const {
    return journal_.tally().devices[device].live_bytes.load(std::memory_order_relaxed);
  }
  // The address range is about to be recorded for somebody else.
  void settle(std::uint64_t address, std::uint64_t bytes) { slabs_.settle(address, bytes); }

  // The program synchronises a context: what it freed until now counts as freed before. The moment that has passed
  // should the driver answer success.
  std::uint64_t before_synchronise() noexcept;

  // While it lives others know that what they are refused may fit later (is_changing).
  class SlabInTransit;

 private:
  friend class MissHandler;
  friend class SlabReleaser;
  friend class TeardownUpstream;
  // What the pools of one device share.
  struct DevicePoolState {
    DevicePoolState(FenceTracker &fences, FastPaths &fast_paths, int device, const Preallocation &preallocation_plan)
        : plan(preallocation_plan),
          quarantine(fences, fast_paths, device),
          preallocation(plan.bytes > 0 ? due : done) {}
    enum State : int { due, running, done };
    const Preallocation plan;
    Quarantine quarantine;
    std::atomic<std::uint64_t> slab_bytes{0};
    std::atomic<Context *> first{nullptr};  // the only one that preallocates; an identity, never followed
    std::atomic<int> preallocation;
    std::atomic<int> changing{0};  // threads that hold bytes which may come back: of a slab to be or of one that goes
  };

  class Changing {
   public:
    explicit Changing(DevicePoolState &state) : state_(state) { state_.changing.fetch_add(1); }
    ~Changing() {
      state_.changing.fetch_sub(1);
      wake_waiters();
    }
    Changing(const Changing &) = delete;
    Changing &operator=(const Changing &) = delete;

   private:
    DevicePoolState &state_;
  };
  DevicePoolState &state_of(int device);
  DevicePoolState *known_state(int device) { return devices_state_[device].load(std::memory_order_acquire); }
  ContextPool &pool_of(const ContextRef &context);
  FastPath *path_of_caller(CUcontext &current);
  bool has_growth_to_tell(const FastPath &path, std::uint64_t bytes) const;
  std::uint64_t most_to_free_untold(const FastPath &path) const;
  FastPaths::Claim claim_path(const Context &context);
  void open_path(ContextPool &pool, const DevicePoolState &state) noexcept;
  // The contexts that have a pool on a device.
  std::vector<ContextRef> pooled_on(int device);
  CUresult retire(const char *api, std::uint64_t address, CUstream stream, const ContextRef &owner);
  void record_wait(const char *api, int device, const char *how, const Quarantine::Cleaned &cleaned,
                   std::uint64_t start_ns);

  void preallocate(const Request &request, const Contexts::Current &where, ContextPool &pool, DevicePoolState &state);
  void preallocate_now(const Request &request, const Contexts::Current &where, ContextPool &pool,
                       DevicePoolState &state);
  void settle_briefly(const char *api, int device, DevicePoolState &state);
  enum class Take { taken, over_limit, over_group_limit, device_full, failed };
  // One slab of exactly `bytes` for the current context.
  Take take_slab(std::uint64_t bytes, const char *why, const Contexts::Current &where, DevicePoolState &state,
                 ledger::Effort effort, pool::Slab &slab, CUresult &error);
  // False: the driver did not take it.
  bool return_slab(const char *api, const ContextRef &context, const pool::Slab &slab) noexcept;
  void forget_slab(const char *api, const Context &context, const pool::Slab &slab) noexcept;
  void slab_bytes_changed(DevicePoolState &state, int device);
  // Bytes that may lie in quarantine before it is worth asking the driver about them, as long as the pool may grow.
  std::uint64_t slack_bytes(const DevicePoolState &state, int device);

  Devices &devices_;
  ledger::Ledger &ledger_;
  events::Journal &journal_;
  Contexts &contexts_;
  FenceTracker &fences_;
  FastPaths &fast_paths_;
  IpcExporter &exports_;
  Room &room_;
  const bool synchronous_free_;
  SlabDirectory slabs_;
  std::atomic<std::uint64_t> last_slab_{0};
  std::atomic<DevicePoolState *> devices_state_[ledger::kMaxDevices] = {};
};

class BlockPools::SlabInTransit {
 public:
  SlabInTransit(BlockPools &pools, int device) : changing_(pools.state_of(device)) {}

 private:
  const Changing changing_;
};

}  // namespace ration::policy
