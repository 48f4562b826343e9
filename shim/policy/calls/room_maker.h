// Makes room in a device's account for a request that does not fit. The room comes from everything that holds memory of
// the device: pending frees, the driver's pools, destroyed pools, free slabs and granules, and unused memory of other
// processes. The cheapest and least disturbing source comes first.
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
  // Asks the other members of this process's groups for `bytes` beyond what the device has free, or for all that they
  // do not use if that is less. Returns false if nothing came. Waits as ask_others() does, and needs no context.
  bool take_from_others(const char *api, int device, std::uint64_t bytes) noexcept;
  // The most bytes that a request on the device could get once all submitted work has finished, not counting the bytes
  // in mode async's own pool.
  std::uint64_t within_reach(int device) noexcept;
  // Waits for the work that was submitted to the device's contexts before the call, and lets the driver's pools notice
  // its end. Returns false if the work has not finished after kIdlePatienceNs, a capture prevents the wait, or the
  // driver failed. Now and then, when the pools have noticed what has finished so far, calls `enough`, which ends the
  // wait by returning true.
  bool wait_for_work(int device, FunctionRef<bool()> enough) noexcept;
  // Called when a destroyed driver's pool of the device still holds memory (an orphan). The memory goes back once the
  // work that has been submitted by now has finished.
  void fence_orphans(int device) noexcept;
  // Releases those parts of destroyed driver pools' memory that the device has finished using. Never waits.
  void release_orphans(const char *api, int device) noexcept;

 private:
  bool give_own_back(const Need &need, Patience patience) noexcept;
  // For a need that the driver refused. Asks others for what the device lacks beyond what this process could give, then
  // for all that the device lacks; asks for the whole need if the device's free memory is unknown. Returns true if some
  // memory came, or if there is enough by now.
  bool ask_for_device(const Need &need) noexcept;
  bool make_own_room(const Need &need, Patience patience) noexcept;
  // The most that make_own_room() could give. Granules of the asking pool do not count, because it keeps them.
  std::uint64_t own_reach(const Need &need) noexcept;
  // The bytes that a need lacks if the groups leave as much room as now and this process itself gives `own` bytes.
  static std::uint64_t lacking(const ledger::Account &account, const Need &need, std::uint64_t own);
  // Asks the other members of this process's groups, whose threads give at once. Waits until nothing is missing, but
  // at most kAskNs after the last memory came. Does not wait if the members that can be expected to give
  // (IdleNeighbours) hold too little.
  using Of = ledger::Account::Of;
  bool ask_others(const Need &need, Of of, FunctionRef<std::uint64_t()> missing) noexcept;
  // Asks first for what a need lacks beyond `own` bytes, then for all that it lacks. `missing(n)`: the bytes that it
  // lacks beyond n.
  bool ask_beside(const Need &need, Of of, std::uint64_t own,
                  FunctionRef<std::uint64_t(std::uint64_t)> missing) noexcept;
  // Like ask_beside(), for room within the limits. Returns true if some memory came, or if the room is there by now.
  bool comes_from_others(const Need &need, std::uint64_t own) noexcept;
  // Waits, as long as Options::wait_ns allows, for memory that other members hold and use, but not for memory that this
  // process uses.
  bool wait_for_members(const Need &need) noexcept;
  // Records a wait, unless it was so short that it was only a check.
  void record_wait(const Need &need, const char *how, std::uint64_t start_ns, std::uint64_t available_before) noexcept;
  struct OrphanFence {
    int device = 0;
    std::uint64_t up_to = 0;  // StreamPools::orphaned() before the fence was taken
    Fence fence{};
  };
  CUresult poll_briefly(const Fence &fence, FunctionRef<bool()> enough);

  const CallParts &parts_;
  IdleNeighbours neighbours_;
  RankedMutex mutex_{Rank::kOrphanFences};
  std::list<OrphanFence> orphan_fences_ GUARDED_BY(mutex_);  // a list, so that moving entries needs no host memory
};

}  // namespace ration::policy
