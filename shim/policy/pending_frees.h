// Bytes whose stream-ordered free was accepted but has not run yet: still charged, because the device still holds them.
// Layer: policy. Threads: any; driver calls outside the lock. Owns: the events that it records.
#pragma once

#include <cstdint>
#include <list>

#include "driver/functions.h"
#include "ledger/ledger.h"
#include "lock.h"
#include "policy/contexts.h"

namespace ration::policy {

class PendingFrees {
 public:
  explicit PendingFrees(ledger::Ledger &ledger) : ledger_(ledger) {}

  // Bytes that come back when `stream` has passed this point. Where no event can be recorded there they stay charged
  // until their context goes: never too low.
  void add(const ContextRef &context, int device, std::uint64_t bytes, CUstream stream) noexcept;
  // Releases what has passed; with `wait`, waits for the rest of the device first, also for what another thread is
  // waiting for. True: something was released.
  bool settle(int device, bool wait);
  // The context is gone, and with it everything that was pending there.
  void drop(const ContextRef &context);

 private:
  struct Pending {
    ContextRef context;
    int device = 0;
    std::uint64_t bytes = 0;
    CUevent event = nullptr;
  };
  // True: the bytes came back.
  bool settle_one(const Pending &pending, bool wait);

  ledger::Ledger &ledger_;
  RankedMutex mutex_{Rank::kPendingFrees};
  std::list<Pending> pending_ GUARDED_BY(mutex_);  // a list: moved about without memory of the host
  // Threads that have entries of the device taken out.
  int settling_[ledger::kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace ration::policy
