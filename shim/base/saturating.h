// Saturating sums and differences of byte counts, needed because figures of other threads and processes may change
// between two reads.
// Layer: base. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ration {

constexpr std::uint64_t minus_or_zero(std::uint64_t from, std::uint64_t bytes) {
  return from - std::min(from, bytes);
}

constexpr std::uint64_t plus_or_most(std::uint64_t to, std::uint64_t bytes) {
  return to + std::min(bytes, UINT64_MAX - to);
}

}  // namespace ration
