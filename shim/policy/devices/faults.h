// Allocations that are refused on purpose (fail). Layer: policy/devices. Threads: any; no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ration::policy {

// A rule looks at requests that meet all its conditions, and refuses those of them that it picks.
struct FaultRule {
  std::uint64_t above_bytes = 0;  // larger ones only
  std::string library;            // whose file's name contains this; empty: of any
  std::uint64_t after_ns = 0;     // since the rules were made
  std::uint64_t nth = 0;          // picks one; 0: not asked
  std::uint64_t every = 0;        // picks each so-and-so-many-th; 0: not asked
  double probability = 1;         // of each
  std::uint64_t seed = 0;
};

// Design: design/log.md#faults
class Faults {
 public:
  explicit Faults(std::vector<FaultRule> rules);

  bool any() const { return !rules_.empty(); }
  // Counts a request, and tells whether a rule refuses it. `caller`: the return address of the program's call.
  bool refuses(std::uint64_t bytes, const void *caller) noexcept;

 private:
  struct Counted {
    FaultRule rule;
    std::atomic<std::uint64_t> seen{0};
  };
  bool looks_at(const FaultRule &rule, std::uint64_t bytes, const void *caller) const noexcept;

  std::deque<Counted> rules_;  // a counter cannot be moved
  const std::uint64_t start_ns_ = now_ns();
};

}  // namespace ration::policy
