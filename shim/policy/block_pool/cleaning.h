// Reclaims clean blocks from a device's quarantine for one request that found no room in its pool.
// Layer: policy/block_pool. Threads: lives on the stack of one call.
#pragma once

#include <cstdint>

#include "policy/block_pool/backing.h"

namespace ration::policy {

// Design: design/quarantine.md#order-of-a-miss
class Cleaning {
 public:
  Cleaning(FenceTracker &fences, const PoolCall &call) : fences_(fences), call_(call) {}

  // Reclaims clean blocks; returns true if there were any. If the pool may grow and little is in quarantine, does
  // nothing, because asking the driver is costly. If it may grow and the quarantine exceeds its cap, waits briefly.
  bool collect(bool may_grow);
  // Waits until some block is clean. If nothing but another thread's capture prevents that, the wait is bounded.
  bool wait();
  // The driver's error in the latest collect() or wait().
  CUresult error() const { return error_; }
  // Whether another thread freed a block while this one searched, so that the room may have moved between holes, blocks
  // and quarantine in the meantime.
  // Design: design/quarantine.md#looking-again
  bool overtaken() const;

 private:
  bool drain_briefly();

  FenceTracker &fences_;
  const PoolCall &call_;
  CUresult error_ = CUDA_SUCCESS;
  // The quarantine's counts before the latest search of the pool.
  std::uint64_t seen_retired_ = 0;
  std::uint64_t seen_cleaned_ = 0;
  bool capturing_ = false;
  bool drained_briefly_ = false;
  std::uint64_t capture_deadline_ns_ = 0;
};

}  // namespace ration::policy
