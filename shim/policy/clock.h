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
inline constexpr std::uint64_t kBriefly_ns = 10'000'000;

inline void nap() {
  const timespec nap{0, 50'000};
  nanosleep(&nap, nullptr);
}

}  // namespace ration::policy
