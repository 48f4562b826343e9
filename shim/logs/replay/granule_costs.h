// The costs of the driver's calls for granules, in microseconds, according to published figures.
// Layer: logs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ration::pool::replay::costs {

// For 2 MiB: create 29, map 2, access 38, unmap 34, release 23 (vAttention). 1 GiB in one handle costs one and a half
// times as much as cuMemAlloc (GMLake). That paper says that 2 GiB in 1,024 handles of 2 MiB cost 115 times as much as
// cuMemAlloc, which implies 0.61 ms for cuMemAlloc. Between 2 MiB and 1 GiB, the cost of a handle is assumed to grow as
// a power of its size.
constexpr double kCreateUs = 29;
constexpr double kMapUs = 2;
constexpr double kAccessUs = 38;
constexpr double kUnmapUs = 34;
constexpr double kReleaseUs = 23;

inline double factor(std::uint64_t bytes) {
  constexpr double kSmall = 2 << 20;
  constexpr double kLargeFactor = 460.0 / (kCreateUs + kMapUs + kAccessUs);  // for 1 GiB
  const double times = std::max(1.0, static_cast<double>(bytes) / kSmall);
  return std::pow(times, std::log(kLargeFactor) / std::log(512.0));
}

}  // namespace ration::pool::replay::costs
