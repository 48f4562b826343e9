// The pool that serves in the place of a device's default one: the same to the program, but with a cap. Where the limit
// leaves no room for a pool to grow by a whole step, only its cap tells that a block will come from what is free in it
// (StreamPools::reserve_to_cap), and the driver makes its default pool without one.
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

  // The pool to ask the driver for, where the program names `handle`; made at the first call for a default pool that is
  // still empty. The handle itself for any other, and where the device has no limit or the driver no caps.
  CUmemoryPool behind(CUmemoryPool handle) noexcept;
  // The handle that the program knows a pool by.
  CUmemoryPool shown(CUmemoryPool handle) const noexcept;

 private:
  struct Pair {
    std::atomic<bool> known{false};               // what follows
    std::atomic<CUmemoryPool> original{nullptr};  // nullptr: the device has none
    std::atomic<CUmemoryPool> stand_in{nullptr};  // nullptr: there is none
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
