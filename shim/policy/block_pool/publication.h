// Publishes this process's figures in the ledger, where other processes and the command read them.
// Layer: policy/block_pool. Threads: any; no lock is held.
#pragma once

#include <atomic>
#include <cstdint>

#include "policy/block_pool/device_pool.h"

namespace ration::policy {

// Design: design/ledger.md#published-use
class Publication {
 public:
  Publication(const PoolParts &parts, DevicePools &pools) : parts_(parts), pools_(pools) {}

  void publish(int device) noexcept;
  // Publishes the figures that are true when it returns, unless they change all the time. To be used after calls that
  // the driver has served.
  void publish_exactly(int device) noexcept;
  // Does the same for every device whose published figures are out of date.
  void publish_all_exactly() noexcept;

 private:
  std::uint64_t stitched_blocks(int device) noexcept;

  const PoolParts parts_;
  DevicePools &pools_;
  std::atomic<std::uint64_t> publications_{0};  // so that each publishing thread sees what earlier ones published
};

}  // namespace ration::policy
