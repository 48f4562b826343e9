// Makes room in a device's account for a request that does not fit, from everything that holds memory of the device:
// pending frees, the driver's pools, destroyed pools, free slabs. Cheapest and least disturbing first.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include "base/function_ref.h"
#include "policy/block_pool/block_pools.h"
#include "policy/block_pool/room.h"
#include "policy/driver_pools/stream_pools.h"
#include "policy/physical/pending_frees.h"

namespace ration::policy {

class RoomMaker final : public Room {
 public:
  RoomMaker(ledger::Ledger &ledger, FenceTracker &fences, PendingFrees &pending, StreamPools &stream_pools,
            BlockPools &pools)
      : ledger_(ledger), fences_(fences), pending_(pending), stream_pools_(stream_pools), pools_(pools) {}

  bool make_room(const Need &need, Patience patience) noexcept override;
  bool give_back(const Need &need, Patience patience) noexcept override;
  // What a request of the device could have at the most once everything has finished that was submitted; mode async's
  // own pool apart.
  std::uint64_t within_reach(int device) noexcept;
  // Waits for what was submitted to the device's contexts before the call, and lets the driver's pools take note of it.
  // False: it has not finished after kIdlePatienceNs, a capture prevents it, or the driver failed. Asks `enough` at
  // times, when the pools have taken note of what has finished so far; true ends the wait.
  bool wait_for_work(int device, FunctionRef<bool()> enough) noexcept;
  bool wait_for_work(int device) noexcept;
  // Releases what destroyed driver pools held, where the device is idle. Never waits.
  void release_orphans(const char *api, int device) noexcept;

 private:
  CUresult poll_briefly(const Fence &fence, FunctionRef<bool()> enough);

  ledger::Ledger &ledger_;
  FenceTracker &fences_;
  PendingFrees &pending_;
  StreamPools &stream_pools_;
  BlockPools &pools_;
};

}  // namespace ration::policy
