// Gives the driver back memory that a device's pools hold but no block needs: for a request that lacks memory, for
// another process, or because a threshold is exceeded.
// Layer: policy/block_pool. Threads: any; never waits unless it says so.
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

  // The free bytes in the pools of a device, including quarantined blocks.
  std::uint64_t free_bytes(int device);
  // The bytes that could go back to the driver, in slabs without a live block and in whole granules. The granules of
  // the pool that asks do not count, because it keeps them.
  std::uint64_t returnable(int device, const ContextPool *asking = nullptr);
  // Reclaims memory that the device has finished using.
  void clean(int device) noexcept;
  // Granules go back at once, slabs only if the device is idle, because the driver's free of a slab waits for the
  // device's work. With `briefly`, this waits until the device is idle. Returns false if there was nothing to return,
  // the device is at work, or the driver refused.
  // Design: design/granules.md#returning-slabs
  bool give_back(const Room::Need &need, Room::Patience patience) noexcept;
  // Gives back memory that is free beyond the device's threshold, or held beyond an order (`ration set`).
  // Called after frees, once the quarantine has been asked what is clean.
  void keep_to_threshold(const char *api, int device) noexcept;
  // If there is a threshold, asks the quarantine and then does the same as keep_to_threshold().
  void clean_to_threshold(const char *api, int device) noexcept;

 private:
  Returned give_back_free(const Room::Need &need, DevicePool &pool, bool idle);
  bool is_worth_waiting(const Room::Need &need, DevicePool &pool, Room::Patience patience);
  bool becomes_idle(const char *api, DevicePool &pool);

  const PoolParts parts_;
  DevicePools &pools_;
  Sharing &sharing_;
  std::atomic<std::uint64_t> kept_bytes_[ledger::kMaxDevices] = {};  // beyond the threshold, but not in whole pieces
};

}  // namespace ration::policy
