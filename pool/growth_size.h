// Computes how much memory a pool takes when it grows for a request.
// Layer: pool, a leaf (standard library only). Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/unit.h"

namespace ration::pool {

// The smallest step by which a pool normally grows: the driver's own page size for large allocations.
constexpr std::uint64_t kFirstSlabBytes = 2U << 20U;

// Rounds down to whole units. No block fits in the remainder, and a driver would round a size with a remainder up,
// perhaps past the limit.
constexpr std::uint64_t whole_units(std::uint64_t bytes) {
  return bytes / kUnitBytes * kUnitBytes;
}

// The next smaller size to try after a slab of `bytes` was refused. The BFC allocator of JAX and TensorFlow uses the
// same step.
constexpr std::uint64_t nine_tenths(std::uint64_t bytes) {
  return bytes - bytes / 10 - 1;
}

// All in bytes.
struct GrowthState {
  std::uint64_t minimum = 0;                   // what the request needs, in whole units
  std::uint64_t held = 0;                      // what the request's pool holds already
  std::uint64_t most = UINT64_MAX;             // the limit, or the device's size
  std::uint64_t limit = UINT64_MAX;            // UINT64_MAX: no limit
  std::uint64_t available = UINT64_MAX;        // bytes left within the limits of the process and its groups
  std::uint64_t group_available = UINT64_MAX;  // bytes left within the groups' limits; UINT64_MAX: in no group
  std::optional<std::uint64_t> free;           // free bytes on the device, if the driver reports them
  std::uint64_t headroom = 0;                  // the part of `free` to leave alone
  std::optional<std::uint64_t> owed_after;     // the live bytes that trigger a preallocation, if one is still to come
  std::uint64_t granule_bytes = UINT64_MAX;    // UINT64_MAX: the pool grows by slabs
  bool grows_by_slabs() const { return granule_bytes == UINT64_MAX; }
};

// Returns the size to grow by: never less than the request needs, even if the limit or the device leaves less.
std::uint64_t next_growth(const GrowthState &state);

}  // namespace ration::pool
