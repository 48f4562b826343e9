// The clock of every duration in the log.
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

}  // namespace ration::policy
