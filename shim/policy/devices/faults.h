// Refuses allocations on purpose, for tests (setting `fail`). Layer: policy/devices. Threads: any; no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ration::policy {

// A rule counts the requests that meet all its conditions, and refuses some of them.
struct FaultRule {
  std::uint64_t above_bytes = 0;  // condition: the request is larger
  std::string library;            // condition: the name of the calling library's file contains this; empty: any
  std::uint64_t after_ns = 0;     // condition: at least this long after the rules were created
  std::uint64_t nth = 0;          // refuses only the nth of the requests that meet the conditions; 0: not set
  std::uint64_t every = 0;        // refuses every such request whose number is a multiple of this; 0: not set
  double probability = 1;         // of a refusal, for each such request
  std::uint64_t seed = 0;
};

// Design: design/log.md#faults
class Faults {
 public:
  explicit Faults(std::vector<FaultRule> rules);

  bool any() const { return !rules_.empty(); }
  // Counts a request, and returns whether a rule refuses it. `caller`: the return address of the program's call.
  bool refuses(std::uint64_t bytes, const void *caller) noexcept;

 private:
  struct Counted {
    FaultRule rule;
    std::atomic<std::uint64_t> seen{0};
  };
  bool looks_at(const FaultRule &rule, std::uint64_t bytes, const void *caller) const noexcept;

  std::deque<Counted> rules_;  // a deque, because atomic counters cannot be moved
  const std::uint64_t start_ns_ = now_ns();
};

}  // namespace ration::policy
