// The ledger's clocks. Layer: ledger. Threads: any; no system call (vDSO).
#pragma once

#include <time.h>

#include <cstdint>

namespace ration::ledger {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// The same for all processes of a machine, whatever is set.
inline std::uint64_t monotonic_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

inline std::uint64_t unix_ns() {
  return clock_ns(CLOCK_REALTIME);
}

}  // namespace ration::ledger
