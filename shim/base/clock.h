// The clocks for durations, deadlines and time stamps.
// Layer: base. Threads: any; no system call (vDSO).
#pragma once

#include <time.h>

#include <cstdint>

namespace ration {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

// CLOCK_MONOTONIC: the same for all processes of a machine, whatever the wall clock is set to.
inline std::uint64_t now_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

inline std::uint64_t unix_ns() {
  return clock_ns(CLOCK_REALTIME);
}

}  // namespace ration
