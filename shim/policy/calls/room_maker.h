// Makes room in a device's account for a request that does not fit, from everything that holds memory of the device:
// pending frees, the driver's pools, destroyed pools, free slabs and granules, and what other processes do not use.
// Cheapest and least disturbing first.
// Layer: policy/calls. Threads: any; no lock is held across a driver call.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>

#include "base/function_ref.h"
#include "base/lock.h"
#include "policy/block_pool/room.h"
#include "policy/calls/idle_neighbours.h"
#include "policy/contexts/fence_tracker.h"

namespace ration::policy {

struct CallParts;

class RoomMaker final : public Room {
 public:
  explicit RoomMaker(const CallParts &parts) : parts_(parts) {}

  bool make_room(const Need &need, Patience patience) noexcept override;
  bool give_back(const Need &need, Patience patience) noexcept override;
  bool give_away(const char *api, int device, std::uint64_t bytes) noexcept override;
  // Asks the other members of this process's groups for so much more than the device has free, or for all that they do
  // not use where that is less. False: nothing came. Waits as ask_others() does, and needs no context.
  bool take_from_others(const char *api, int device, std::uint64_t bytes) noexcept;
  // What a request of the device could have at the most once everything has finished that was submitted; mode async's
  // own pool apart.
  std::uint64_t within_reach(int device) noexcept;
  // Waits for what was submitted to the device's contexts before the call, and lets the driver's pools take note of it.
  // False: it has not finished after kIdlePatienceNs, a capture prevents it, or the driver failed. Asks `enough` at
  // times, when the pools have taken note of what has finished so far; true ends the wait.
  bool wait_for_work(int device, FunctionRef<bool()> enough) noexcept;
  // The driver's pools of the device have a new orphan: what it holds goes with the work that is submitted by now.
  void fence_orphans(int device) noexcept;
  // Releases what destroyed driver pools held, as far as the device is through with it. Never waits.
  void release_orphans(const char *api, int device) noexcept;

 private:
  bool give_own_back(const Need &need, Patience patience) noexcept;
  // For a need that the driver refused: what the device lacks beside what this process could give itself, then all that
  // it lacks. Where that is not known, so much as is needed.
  // True: some came, or it is there by now.
  bool ask_for_device(const Need &need) noexcept;
  bool make_own_room(const Need &need, Patience patience) noexcept;
  // What that could give: what the asking pool has of granules apart, which the need leaves out.
  std::uint64_t own_reach(const Need &need) noexcept;
  // What the groups do not leave of a need beside so much that this process has to give itself.
  static std::uint64_t lacking(const ledger::Account &account, const Need &need, std::uint64_t own);
  // Of the other members of this process's groups, whose threads give at once. Waits kAskNs at most until nothing is
  // missing, and not at all where those that can be expected to give (IdleNeighbours) hold too little.
  using Of = ledger::Account::Of;
  bool ask_others(const Need &need, Of of, FunctionRef<std::uint64_t()> missing) noexcept;
  // The same first for what a need lacks beside `own` bytes, then for all that it lacks. `missing`: beside so many.
  bool ask_beside(const Need &need, Of of, std::uint64_t own,
                  FunctionRef<std::uint64_t(std::uint64_t)> missing) noexcept;
  // The same within the limits. True: some came, or it is there by now.
  bool comes_from_others(const Need &need, std::uint64_t own) noexcept;
  // The same for what other members hold and use, as long as the setting allows. Not for what this process uses
  // itself.
  bool wait_for_members(const Need &need) noexcept;
  // Of the device, for what was freed in stream order. Of a wait, not of a look.
  void record_wait(const Need &need, const char *how, std::uint64_t start_ns, std::uint64_t available_before) noexcept;
  struct OrphanFence {
    int device = 0;
    std::uint64_t up_to = 0;  // StreamPools::orphaned() before it was taken
    Fence fence{};
  };
  CUresult poll_briefly(const Fence &fence, FunctionRef<bool()> enough);

  const CallParts &parts_;
  IdleNeighbours neighbours_;
  RankedMutex mutex_{Rank::kOrphanFences};
  std::list<OrphanFence> orphan_fences_ GUARDED_BY(mutex_);  // a list: moved about without memory of the host
};

}  // namespace ration::policy
