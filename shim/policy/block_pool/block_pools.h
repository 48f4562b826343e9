// Mode pool: blocks of the program from the pools of its contexts, one pool for each context life.
// Layer: policy/block_pool. Threads: any; no lock is held across a driver call. Owns: each device's quarantine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/held.h"
#include "events/journal.h"
#include "ledger/ledger.h"
#include "policy/block_pool/context_pools.h"
#include "policy/block_pool/giver.h"
#include "policy/block_pool/ipc_exporter.h"
#include "policy/block_pool/quarantine.h"
#include "policy/block_pool/room.h"
#include "policy/block_pool/slab_directory.h"
#include "policy/block_pool/unreturned.h"
#include "policy/contexts/captures.h"
#include "policy/contexts/contexts.h"
#include "policy/contexts/fence_tracker.h"
#include "policy/devices/devices.h"
#include "policy/devices/request.h"

namespace ration::policy {

// What pools are made of: the driver's allocations, or granules of physical memory that are mapped where they are
// needed (pool/stitch); `best`: granules on devices that have them.
enum class Backing { slab, vmm, best };
constexpr const char *name_of(Backing backing) {
  return backing == Backing::slab ? "slab" : backing == Backing::vmm ? "vmm" : "auto";
}

// How granules are made, where the device can: so that other processes can map them, and network cards reach them.
// Aligned to its size, so that an atomic one needs no library.
struct alignas(2) GranuleKind {
  bool exportable = false;
  bool rdma = false;
};

class BlockPools {
 public:
  BlockPools(Devices &devices, ledger::Ledger &ledger, events::Journal &journal, Contexts &contexts,
             FenceTracker &fences, ContextPools &context_pools, IpcExporter &exports, Room &room, bool no_fast_path,
             bool synchronous_free, Backing backing = Backing::slab)
      : devices_(devices),
        ledger_(ledger),
        journal_(journal),
        contexts_(contexts),
        fences_(fences),
        context_pools_(context_pools),
        exports_(exports),
        room_(room),
        no_fast_path_(no_fast_path),
        synchronous_free_(synchronous_free),
        backing_(backing) {}

  ~BlockPools();
  BlockPools(const BlockPools &) = delete;
  BlockPools &operator=(const BlockPools &) = delete;

  // Whether this driver can tell when a freed block may be reused.
  static bool possible() { return FenceTracker::can_tell(); }

  // The fast path (context_pool.h), where it is open. False: nothing happened, take the slow path. A hit touches only
  // what the fast path's lock guards and the totals, and asks the driver only for the current context. A due free runs
  // the quarantine, too. A call whose change must be published in the ledger is no hit.
  bool allocate_hit(std::uint64_t bytes, CUdeviceptr *address) noexcept;
  bool free_hit(std::uint64_t address) noexcept;
  // The same with a log, in which a hit is recorded, too; the first only where it can come to that.
  bool records_hits() const { return context_pools_.in_recorded_use(); }
  bool allocate_hit(const Request &request, events::Via via, CUdeviceptr *address) noexcept;
  bool free_hit(const char *api, std::uint64_t address) noexcept;

  // A block of `request.upper_bound` bytes. `denied` gets the reason where there is no memory for it.
  CUresult allocate(const Request &request, const Contexts::Current &where, events::Via via, CUdeviceptr *address,
                    std::optional<events::Reason> &denied);

  // The context whose slab contains `address`; nullptr: none, the driver answers for that address.
  ContextRef owner_of(std::uint64_t address) { return slabs_.find(address); }
  // Its device, or -1. Never waits.
  int device_at(std::uint64_t address) { return slabs_.device_at(address); }
  // REQUIRES: `owner` is owner_of's answer. Anything but the start of a live block: INVALID_VALUE.
  CUresult free(const char *api, std::uint64_t address, const ContextRef &owner);
  CUresult free_in_stream(const char *api, std::uint64_t address, CUstream stream, const ContextRef &owner);
  // What the driver would answer to a free on this thread: its refusal without a context or after its own end.
  CUresult state_of_caller();
  std::optional<pool::Block> block_at(std::uint64_t address, const ContextRef &owner);
  pool::SharedPool &blocks_of(const ContextRef &owner);

  // A handle by which other processes can open the live block around `address`, and only that (ipc_exporter.h).
  // `refused` says why there can be none. REQUIRES: `owner` is owner_of's answer.
  CUresult share(std::uint64_t address, const ContextRef &owner, CUipcMemHandle *handle, std::string &refused);
  // Moves freed blocks that no other process has open any more into quarantine; looks at `most` of them.
  static constexpr std::size_t kFewKept = 8;
  void reclaim_unshared(std::size_t most = SIZE_MAX) noexcept;

  // A context that ends takes its pool along: begin before the driver's call, then cancel or finish.
  void begin_end(const ContextRef &context) noexcept {
    context->close_to_hits();
    slabs_.begin_end(context);
  }
  void cancel_end(const ContextRef &context) noexcept { slabs_.cancel_end(context); }
  void finish_end(const char *api, const ContextRef &context) noexcept;

  // Free in the pools of a device, quarantined blocks included.
  std::uint64_t free_bytes(int device);
  // What the pools of a device hold beyond their live blocks.
  std::uint64_t reclaimable(int device);
  // The part of that which can go back to the driver: slabs without a live block, and whole granules; while blocks are
  // retired, at most that much. Not the granules of the pool that asks, which keeps them.
  std::uint64_t returnable(int device, const ContextPool *asking = nullptr);
  // Reclaims what the device is through with; waits for nothing.
  void clean(int device) noexcept;
  // Returns wholly free slabs to the driver if the device is idle, because the driver's free waits for its work. False:
  // there were none, the device is at work, or the driver refused.
  bool give_back_slabs(const Room::Need &need, Room::Patience patience) noexcept;
  // Whether `bytes` would fit under the limit if other contexts' pools held nothing free.
  bool holds_elsewhere(int device, const Context *caller, std::uint64_t bytes);
  // Fills in what an oom record says of the pools; `of` is the requesting context.
  void explain(events::Oom &oom, const Context *of);
  // A context of `peer` may access the memory of a device's contexts from now on: access was enabled, or it copies.
  void peer_may_access(int device, int peer) noexcept;
  // Publishes a device's figures in the ledger. publish_exactly(): those that hold when it returns, unless they change
  // all the time; for calls that the driver has served. publish_all_exactly(): where others see anything else.
  void publish(int device) noexcept;
  void publish_exactly(int device) noexcept;
  void publish_all_exactly() noexcept;
  // Gives back what is free beyond the threshold. Never waits. After frees, where the quarantine was asked.
  void keep_to_threshold(const char *api, int device) noexcept;
  // The same on all devices, asking the quarantine first.
  void keep_to_thresholds() noexcept;
  // Gives another process what it wishes for of what is free. Never waits. In a call of the program's that touches
  // shared memory anyway, and by the giver.
  void give_to_others(const char *api, int device) noexcept;
  // Applies what was ordered for this process; where it holds more than was ordered, gives back what is free, and
  // closes the fast path. Never waits.
  void heed_orders(const char *api) noexcept;
  // Whether a limit that was ordered lies below what is held, and leaves no room for so much more use.
  bool is_beyond_order(int device, std::uint64_t bytes);
  bool is_over_order(int device) const {
    return ledger_.account(device).is_ordered() && ledger_.account(device).excess() != 0;
  }
  // A pool of the device, whosever, may hold what others wish for.
  void start_giving(int device) noexcept;
  // At the end of the process, and of its main thread.
  void stop_giving() noexcept { giver_.stop(); }
  void end_giving() noexcept { giver_.end(Giver::kLastGiftNs); }
  // After a refusal: the granule of the check, where the context's pool has no other and no block, may be what others
  // lack.
  void release_unused(const char *api, const ContextRef &context) noexcept;
  std::uint64_t used(int device) const {
    return journal_.tally().devices[device].live_bytes.load(std::memory_order_relaxed);
  }
  // Waits until no slab in this range is being ended, so that the range's next owner is logged later.
  void wait_for_ends(std::uint64_t address, std::uint64_t bytes) { slabs_.wait_for_ends(address, bytes); }

  // Before work is submitted: whether a free has no fence yet, most likely; and its fence, unless so many were taken
  // lately that they cost too much.
  bool has_unsealed_frees() noexcept {
    for (int device = 0, end = devices_end_.load(std::memory_order_relaxed); device < end; ++device) {
      if (DevicePoolState *state = known_state(device); state != nullptr && state->quarantine.has_unsealed()) {
        return true;
      }
    }
    return false;
  }
  void seal_frees() noexcept;
  // Before a synchronise of the program's: the number of the fence that has passed if the driver answers success.
  std::uint64_t before_synchronise() noexcept;
  // After it succeeded, in a context of `device`.
  void after_synchronise(int device) noexcept;

  // What of the limit nothing holds and this process alone could take. 0 in a group, or without a limit.
  std::uint64_t rest_of_limit(int device);
  // What a preallocation leaves alone of so much free memory.
  std::uint64_t headroom_of(const Preallocation &plan, int device, std::uint64_t free_bytes);
  // What the device has free beyond what preallocation leaves alone.
  std::uint64_t free_beyond_headroom(int device);
  // What pools of a device are made of, as far as its driver says, and why.
  Backing backing_on(CUdevice device, std::string &reason);
  // Whether the pool of a context is made of granules.
  static bool has_granules(const Context &context) {
    const ContextPool *pool = existing_pool(context);
    return pool != nullptr && pool->blocks.stitches();
  }
  // Whether other processes can open what lies in the granules of a device.
  bool can_share_granules(int device) { return granule_kind(device).exportable; }
  GranuleKind granule_kind(int device) {
    const DevicePoolState *state = known_state(device);
    return state != nullptr ? state->kind.load(std::memory_order_relaxed) : GranuleKind{};
  }
  // Whether a block of that size is better the driver's own than a reason for a slab, or a chunk of a driver's pool, to
  // be taken: neither goes back to other processes while a small block is in it.
  bool strands_others(int device, std::uint64_t bytes) {
    return bytes >= kLeastAlone && ledger_.account(device).neighbours() != 0;
  }
  // Whether so few blocks of that size fit under the limit that it matters where each lies.
  bool is_of_few(int device, std::uint64_t bytes) { return bytes >= most_bytes(device) / 128; }

 private:
  friend class MissHandler;
  friend class SlabReleaser;
  friend class SlabMerger;
  friend class GranuleMemory;
  friend class FirstGranule;
  friend class TeardownUpstream;
  // What the pools of one device share.
  struct DevicePoolState {
    DevicePoolState(FenceTracker &fences, ContextPools &context_pools, int device,
                    const Preallocation &preallocation_plan)
        : plan(preallocation_plan),
          quarantine(fences, context_pools, device),
          preallocation(plan.bytes > 0 ? due : done) {}
    enum State : int { due, running, done };
    const Preallocation plan;
    Quarantine quarantine;
    std::atomic<std::uint64_t> slab_bytes{0};
    std::atomic<Context *> first{nullptr};  // the only one that preallocates; an identity, never dereferenced
    std::atomic<int> preallocation;
    std::atomic<bool> full{false};                  // the driver had no memory for a slab lately
    std::atomic<std::uint64_t> merge_waited_ns{0};  // when a request last waited for slabs to merge
    ReentrantGate::Owner choosing{nullptr};         // one thread at a time makes a context's pool
    static constexpr std::uint64_t kNotKnown = UINT64_MAX;
    std::atomic<std::uint64_t> page_bytes{kNotKnown};  // of granules; 0: the device has none
    std::atomic<GranuleKind> kind{};                   // of granules; written before page_bytes is
    bool has_granules() const { return page_bytes.load() != 0 && page_bytes.load() != kNotKnown; }
    std::atomic<std::uint64_t> gave_ns{0};     // when another process's wish was granted last
    std::atomic<std::uint64_t> kept_bytes{0};  // free beyond the threshold, but in no whole granule
    std::atomic<std::uint64_t> peers{0};       // a bit for each device that may access this one's memory
  };

  static constexpr std::uint64_t kLeastAlone = 1U << 20U;

  DevicePoolState &state_of(int device);
  DevicePoolState *known_state(int device) { return devices_state_[device].load(std::memory_order_acquire); }
  ContextPool &pool_of(const ContextRef &context);
  ContextPool *pool_of_caller(CUcontext &current);
  // In holes of the device's pools. Takes each pool's lock.
  std::uint64_t clean_bytes(int device);
  // The live ones of a device. Takes each pool's lock.
  std::uint64_t stitched_blocks(int device) noexcept;
  // After a call that took or retired the block: the counts of stitched blocks change whatever their size.
  // A call that publishes touches shared memory anyway, so it looks there for wishes.
  void publish_change(const char *api, const ContextPool &pool, std::uint64_t address, int device) noexcept {
    if (pool.is_stitched(address) || ledger_.account(device).is_worth_publishing(used(device))) {
      publish(device);
      give_to_others(api, device);
    }
  }
  void clean_to_threshold(const char *api, int device) noexcept;
  bool has_rise_to_publish(const ContextPool &pool, std::uint64_t bytes) const;
  std::uint64_t most_to_free_unpublished(const ContextPool &pool) const;
  void open_fast_path(ContextPool &pool, const DevicePoolState &state) noexcept;
  // What else a free on the fast path has to do.
  void finish_free(const char *api, CUcontext current, const ContextPool::Freed &freed) noexcept;
  void clean_after_hit(const char *api, CUcontext current, const ContextPool::Freed &freed) noexcept;
  void wait_after_hit(CUcontext handle, std::uint64_t bytes) noexcept;
  // The contexts that have a pool on a device.
  std::vector<ContextRef> pooled_on(int device);
  // `bytes` gets the block's size.
  // `stream`: nullopt unless it is freed in stream order.
  CUresult retire(const char *api, std::uint64_t address, std::optional<CUstream> stream, const ContextRef &owner,
                  std::uint64_t &bytes);
  void record_wait(const char *api, int device, const char *how, const Quarantine::Cleaned &cleaned,
                   std::uint64_t start_ns);

  void preallocate(const Request &request, const Contexts::Current &where, ContextPool &pool, DevicePoolState &state);
  static void end_preallocation(void *state) noexcept;
  void preallocate_now(const Request &request, const Contexts::Current &where, ContextPool &pool,
                       DevicePoolState &state);
  void drain_briefly(const char *api, int device, DevicePoolState &state, std::uint64_t most_ns);
  bool can_grow(const DevicePoolState &state, int device, std::uint64_t block_bytes);
  // Whether half of the limit is freed and not clean, or more than the quarantine's cap.
  bool holds_much(DevicePoolState &state, int device);
  // After a free: waits as the driver's would where what is clean could not serve such a block again, or where the
  // pools hold much.
  void wait_after_free(const char *api, const ContextRef &owner, std::uint64_t bytes) noexcept;
  // Before one of few blocks that fit is placed: free slabs that could hold more of them as one slab become one.
  void merge_slabs(const Request &request, const Contexts::Current &where, ContextPool &pool, DevicePoolState &state);
  void clean_for_merge(const char *api, int device, DevicePoolState &state);
  bool may_need_rest(const ContextPool &pool, std::uint64_t bytes) const;
  // Whether anything is left of a limit; touches no shared memory.
  bool has_rest(int device) const;
  bool becomes_idle(const char *api, DevicePoolState &state, int device);
  bool is_worth_returning(const Room::Need &need, Room::Patience patience);
  enum class Take { taken, over_limit, over_group_limit, device_full, failed };
  // Takes one slab of exactly `bytes` for the current context.
  Take take_slab(std::uint64_t bytes, const char *why, const Contexts::Current &where, DevicePoolState &state,
                 ledger::Effort effort, pool::Slab &slab, CUresult &error);
  Take obtain(std::uint64_t bytes, int device, DevicePoolState &state, ledger::Effort effort, ledger::Transit &transit,
              CUresult &error, FunctionRef<CUresult()> call);
  void slab_taken(DevicePoolState &state, int device, std::uint64_t bytes);
  void slab_gone(int device, std::uint64_t bytes) noexcept;
  CUdevice handle_of(int device);
  bool loses_much(CUdevice device, std::uint64_t page_bytes);
  // How large the granules of a device are for its limit. `asked`: 0 for no size.
  std::uint64_t granule_bytes_on(int device, std::uint64_t page_bytes, std::uint64_t asked);
  static CUresult find_slab(const pool::Block &block, const ContextPool &pool, ledger::ExportedBlock &in);
  void choose_backing(const ContextRef &context, ContextPool &pool, DevicePoolState &state) noexcept;
  void give_up_addresses(const char *api, const Context &context, ContextPool &pool) noexcept;
  // The device makes no granules: `reason`, which stderr is told if `is_said`.
  void have_no_granules(int device, DevicePoolState &state, const std::string &reason, bool is_said);
  CUresult allow_access(int device, std::uint64_t address, std::uint64_t bytes) noexcept;
  void let_peers_in(int device, ContextPool &pool);
  // The log and the sums of a granule. The first throws bad_alloc.
  void note_granule(std::uint64_t handle, std::uint64_t bytes, const char *why, const Context &context,
                    std::uint64_t duration_ns);
  void note_granule_end(std::uint64_t handle, std::uint64_t bytes, const char *api, const Context &context) noexcept;
  // As take_slab(), in whole pages: the slab's id is the driver's handle then.
  Take take_granule(std::uint64_t bytes, const char *why, const Contexts::Current &where, DevicePoolState &state,
                    ledger::Effort effort, pool::Slab &slab, CUresult &error);
  // The same in handles of `most_bytes`, all under one reservation. Where the device does not have them, they go back
  // and one handle for all is tried: another process may be in the middle of the same, and neither would have enough.
  Take take_granules(std::uint64_t bytes, std::uint64_t most_bytes, const char *why, const Contexts::Current &where,
                     DevicePoolState &state, ledger::Effort effort, std::vector<pool::Slab> &parts, CUresult &error);
  void return_granule(const char *api, const ContextRef &context, std::uint64_t handle, std::uint64_t bytes) noexcept;
  void preallocate_granules(const Request &request, const Contexts::Current &where, ContextPool &pool,
                            DevicePoolState &state, std::uint64_t bytes);
  std::uint64_t give_back_granules(const Room::Need &need) noexcept;
  void end_granules(const char *api, const ContextRef &context, ContextPool &pool) noexcept;
  // Returns a slab to the driver. False: the driver refused.
  bool return_slab(const char *api, const ContextRef &context, const pool::Slab &slab) noexcept;
  void forget_slab(const char *api, const Context &context, const pool::Slab &slab) noexcept;
  void slab_bytes_changed(DevicePoolState &state, int device);
  // The limit, or the device's size.
  std::uint64_t most_bytes(int device);
  // Quarantined bytes below which a pool that may grow does not ask the driver what is clean.
  std::uint64_t slack_bytes(const DevicePoolState &state, int device);

  Devices &devices_;
  ledger::Ledger &ledger_;
  events::Journal &journal_;
  Contexts &contexts_;
  FenceTracker &fences_;
  ContextPools &context_pools_;
  IpcExporter &exports_;
  Room &room_;
  const bool no_fast_path_;  // every call has more to do than that does
  const bool synchronous_free_;
  const Backing backing_;
  Unreturned unreturned_{ledger_};
  RankedMutex granules_mutex_{Rank::kGranules};
  std::unordered_map<std::uint64_t, std::uint64_t> granule_ids_ GUARDED_BY(granules_mutex_);  // in the log, by handle
  SlabDirectory slabs_;
  std::atomic<std::uint64_t> last_slab_{0};
  std::atomic<std::uint64_t> publications_{0};  // each thread that publishes sees what the ones before published
  std::atomic<DevicePoolState *> devices_state_[ledger::kMaxDevices] = {};
  std::atomic<int> devices_end_{0};  // behind the last device with a state
  Giver giver_{*this, ledger_};      // the destructor ends it first
};

}  // namespace ration::policy
