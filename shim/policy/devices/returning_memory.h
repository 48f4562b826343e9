// Retries a request that finds the device full shortly after another process died, because the driver frees a killed
// process's memory only some time after the kernel has dropped that process's locks.
// Layer: policy/devices. Threads: lives on the stack of one call.
#pragma once

#include "base/clock.h"
#include "base/wait.h"
#include "ledger/ledger.h"
#include "policy/devices/devices.h"

namespace ration::policy {

// Design: design/ledger.md#late-memory
class ReturningMemory {
 public:
  // `bytes`: the size of the request.
  ReturningMemory(Devices &devices, int device, ledger::Account &account, std::uint64_t bytes)
      : devices_(devices), account_(account), bytes_(bytes), device_(device) {}

  // Whether another attempt is worthwhile, because a process that held memory of the device died recently.
  bool expected() {
    if (start_ns_ == 0) {
      start_ns_ = tried_ns_ = now_ns();
    }
    const std::uint64_t total = devices_.total_on(device_);
    const bool can_fit = total == 0 || bytes_ <= total;
    return can_fit && tried_ns_ - start_ns_ < kPatienceNs && account_.member_died_within(kLatelySeconds);
  }
  // REQUIRES: the caller holds no reservation in the meantime, because others could be refused on account of it.
  void sleep() {
    backoff_.sleep();
    tried_ns_ = now_ns();
  }

 private:
  static constexpr std::uint64_t kLatelySeconds = 2;
  // On an H200, the memory becomes free after 71 to 222 ms (tests/gpu/results).
  static constexpr std::uint64_t kPatienceNs = 500'000'000;

  Devices &devices_;
  ledger::Account &account_;
  const std::uint64_t bytes_;
  const int device_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t tried_ns_ = 0;  // when the latest attempt began: a thread that has not run since then gets one more
  Backoff backoff_;
};

}  // namespace ration::policy
