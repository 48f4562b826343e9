// Replaces a device's default pool by a stand-in that looks the same to the program but has a cap. If the limit leaves
// too little for a pool to grow by a whole step, only a cap guarantees that a block comes from memory that is free in
// the pool already (StreamPools::reserve_to_cap). The driver's own default pool has no cap.
// Layer: policy/driver_pools. Threads: any; no lock is held across a driver call.
#pragma once

#include <atomic>

#include "base/reentrant_gate.h"
#include "policy/devices/devices.h"
#include "policy/driver_pools/stream_pools.h"

namespace ration::policy {

// Design: design/modes.md#capped-pools
class DefaultPools {
 public:
  DefaultPools(Devices &devices, ledger::Ledger &ledger, StreamPools &stream_pools)
      : devices_(devices), ledger_(ledger), stream_pools_(stream_pools) {}

  // The pool to pass to the driver if the program passes `handle`. The stand-in is created at the first call for a
  // default pool that is still empty. Returns `handle` itself for any other pool, or if the device has no limit or the
  // driver has no caps.
  CUmemoryPool behind(CUmemoryPool handle) noexcept;
  // The handle by which the program knows a pool.
  CUmemoryPool shown(CUmemoryPool handle) const noexcept;

 private:
  struct Pair {
    std::atomic<bool> known{false};               // the two members below are set
    std::atomic<CUmemoryPool> original{nullptr};  // nullptr: the device has no default pool
    std::atomic<CUmemoryPool> stand_in{nullptr};  // nullptr: there is no stand-in
  };
  void learn(Pair &pair, const Device &device) noexcept;
  CUmemoryPool make(CUmemoryPool original, const Device &device) noexcept;

  Devices &devices_;
  ledger::Ledger &ledger_;
  StreamPools &stream_pools_;
  ReentrantGate::Owner making_{nullptr};
  Pair pairs_[ledger::kMaxDevices];
};

}  // namespace ration::policy
