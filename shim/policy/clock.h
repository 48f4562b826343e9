// The clock of every duration in the log, and short waits.
// Layer: policy. Threads: any.
#pragma once

#include <cstdint>
#include <ctime>

namespace ration::policy {

// CLOCK_MONOTONIC in nanoseconds; no system call (vDSO).
inline std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

// How long a call may wait for the device for the sake of tidiness alone.
inline constexpr std::uint64_t kBrieflyNs = 10'000'000;

// Sleeps between two looks at the device, longer each time: every look costs driver calls.
class Naps {
 public:
  void nap() {
    const timespec time{0, next_ns_};
    nanosleep(&time, nullptr);
    next_ns_ = next_ns_ < kLongestNs ? 2 * next_ns_ : next_ns_;
  }

 private:
  static constexpr long kLongestNs = 1'600'000;
  long next_ns_ = 100'000;
};

}  // namespace ration::policy
