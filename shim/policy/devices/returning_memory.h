// Retries a request that finds the device full shortly after a neighbour died: the driver returns a killed process's
// memory some time after the kernel has dropped its locks.
// Layer: policy/devices. Threads: lives on the stack of one call.
#pragma once

#include "base/clock.h"
#include "base/wait.h"
#include "ledger/ledger.h"

namespace ration::policy {

class ReturningMemory {
 public:
  // For a request of so many bytes on a device of `total`; 0: that is not known.
  ReturningMemory(ledger::Account &account, std::uint64_t bytes, std::uint64_t total)
      : account_(account), can_fit_(total == 0 || bytes <= total) {}

  // Whether a process that held memory of the device died lately, so that another try is worth it.
  bool expected() {
    if (!can_fit_) {
      return false;
    }
    if (start_ns_ == 0) {
      start_ns_ = now_ns();
    }
    return now_ns() - start_ns_ < kPatienceNs && account_.member_died_within(kLatelySeconds);
  }
  // REQUIRES: the caller holds no reservation meanwhile; others could be refused because of it.
  void sleep() { backoff_.sleep(); }

 private:
  static constexpr std::uint64_t kLatelySeconds = 2;
  // On an H200 the memory is back after 71 to 222 ms (tests/gpu/results).
  static constexpr std::uint64_t kPatienceNs = 500'000'000;

  ledger::Account &account_;
  const bool can_fit_;
  std::uint64_t start_ns_ = 0;
  Backoff backoff_;
};

}  // namespace ration::policy
