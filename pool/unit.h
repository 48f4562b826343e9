// The unit in which the pool hands out memory: every block starts and ends on a unit boundary.
// Layer: pool, a leaf (standard library only). Threads: values, no shared state.
#pragma once

#include <cstdint>

namespace ration::pool {

// A device address; the pool never dereferences one.
using Address = std::uint64_t;

// CUDA promises an alignment of 256 bytes, but every GPU since Kepler gives 512 bytes, and programs that bind textures
// rely on that.
inline constexpr std::uint64_t kUnitBytes = 512;
inline constexpr unsigned kUnitShift = 9;
static_assert(std::uint64_t{1} << kUnitShift == kUnitBytes);

// The largest size of a block or a slab: no device has a larger address space.
inline constexpr std::uint64_t kMaximumBytes = std::uint64_t{1} << 48;

// REQUIRES: bytes <= kMaximumBytes. A request of 0 bytes gets one unit, so that its address is unique.
constexpr std::uint64_t units_of(std::uint64_t bytes) {
  return bytes == 0 ? 1 : (bytes + kUnitBytes - 1) >> kUnitShift;
}

constexpr std::uint64_t bytes_of(std::uint64_t units) {
  return units << kUnitShift;
}

// Fibonacci hashing, which makes the upper bits random. Addresses and sizes differ in few bits, mostly low ones.
constexpr std::uint64_t mixed(std::uint64_t units) {
  return units * 0x9E3779B97F4A7C15;
}

}  // namespace ration::pool
