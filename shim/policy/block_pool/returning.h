// What the pools of a device hold and no block needs goes back to the driver: for a request that lacks it, for another
// process, or because it is more than a threshold.
// Layer: policy/block_pool. Threads: any; never waits but where it says so.
#pragma once

#include <atomic>
#include <cstdint>

#include "policy/block_pool/backing.h"
#include "policy/block_pool/sharing.h"

namespace ration::policy {

class Returning {
 public:
  Returning(const PoolParts &parts, DevicePools &pools, Sharing &sharing)
      : parts_(parts), pools_(pools), sharing_(sharing) {}

  // Free in the pools of a device, quarantined blocks included.
  std::uint64_t free_bytes(int device);
  // What could go back to the driver: slabs without a live block, and whole granules, but not the granules of the pool
  // that asks, which keeps them.
  std::uint64_t returnable(int device, const ContextPool *asking = nullptr);
  // Reclaims what the device is through with.
  void clean(int device) noexcept;
  // Granules go back at once, slabs if the device is idle, because the driver's free waits for its work. `briefly`
  // waits for that. False: there was nothing, the device is at work, or the driver refused.
  // Design: design/granules.md#returning-slabs
  bool give_back(const Room::Need &need, Room::Patience patience) noexcept;
  // Gives back what is free beyond the threshold of a device, or what this process holds beyond an order. After frees,
  // where the quarantine was asked.
  void keep_to_threshold(const char *api, int device) noexcept;
  // Where there is a threshold: asks the quarantine, then the same.
  void clean_to_threshold(const char *api, int device) noexcept;

 private:
  Returned give_back_free(const Room::Need &need, DevicePool &pool, bool idle);
  bool is_worth_waiting(const Room::Need &need, DevicePool &pool, Room::Patience patience);
  bool becomes_idle(const char *api, DevicePool &pool);

  const PoolParts parts_;
  DevicePools &pools_;
  Sharing &sharing_;
  std::atomic<std::uint64_t> kept_bytes_[ledger::kMaxDevices] = {};  // free beyond the threshold, but in no whole piece
};

}  // namespace ration::policy
