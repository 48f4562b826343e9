// The device gives back what a killed process held some time after the kernel dropped its locks: a request that finds
// the device full just then is tried again for a while. Layer: policy. Threads: lives on the stack of one call.
#pragma once

#include "ledger/ledger.h"
#include "policy/clock.h"

namespace ration::policy {

class ReturningMemory {
 public:
  explicit ReturningMemory(ledger::Ledger &ledger) : ledger_(ledger) {}

  // True, after a short sleep: a neighbour died lately, and it is worth another try.
  bool nap() {
    if (start_ns_ == 0) {
      start_ns_ = now_ns();
    }
    if (now_ns() - start_ns_ > kPatienceSeconds * 1'000'000'000 || !ledger_.somebody_died_within(kPatienceSeconds)) {
      return false;
    }
    naps_.nap();
    return true;
  }

 private:
  static constexpr std::uint64_t kPatienceSeconds = 2;

  ledger::Ledger &ledger_;
  std::uint64_t start_ns_ = 0;
  Naps naps_;
};

}  // namespace ration::policy
