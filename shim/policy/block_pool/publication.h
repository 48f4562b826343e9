// This process's figures in the ledger, where other processes and the command read them.
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
  // Those that hold when it returns, unless they change all the time; for calls that the driver has served.
  void publish_exactly(int device) noexcept;
  // Of every device of which others see anything else.
  void publish_all_exactly() noexcept;

 private:
  std::uint64_t stitched_blocks(int device) noexcept;

  const PoolParts parts_;
  DevicePools &pools_;
  std::atomic<std::uint64_t> publications_{0};  // each thread that publishes sees what the ones before published
};

}  // namespace ration::policy
