// What of a device's quarantine is clean, for one request that its pool has no room for.
// Layer: policy/block_pool. Threads: lives on the stack of one call.
#pragma once

#include <cstdint>

#include "policy/block_pool/backing.h"

namespace ration::policy {

// Design: design/quarantine.md#order-of-a-miss
class Cleaning {
 public:
  Cleaning(FenceTracker &fences, const PoolCall &call) : fences_(fences), call_(call) {}

  // Reclaims what is clean, unless the pool may grow and little is freed: asking costs driver calls. Where more than
  // the quarantine's cap is freed, waits briefly.
  bool collect(bool may_grow);
  // Waits until something is clean, or a capture of another thread ends.
  bool wait();
  // Of the latest look.
  CUresult error() const { return error_; }
  // Another thread freed while this one looked: the room may have moved between hole, block and quarantine meanwhile.
  // Design: design/quarantine.md#looking-again
  bool overtaken() const;

 private:
  bool drain_briefly();

  FenceTracker &fences_;
  const PoolCall &call_;
  CUresult error_ = CUDA_SUCCESS;
  // The quarantine's counts before the latest look into the pool.
  std::uint64_t seen_retired_ = 0;
  std::uint64_t seen_cleaned_ = 0;
  bool capturing_ = false;
  bool drained_briefly_ = false;
  std::uint64_t capture_deadline_ns_ = 0;
};

}  // namespace ration::policy
