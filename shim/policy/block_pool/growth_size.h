// How much a pool takes when it grows for a request.
// Layer: policy/block_pool. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

namespace ration::policy {

// All in bytes.
struct GrowthState {
  std::uint64_t minimum = 0;                   // what the request needs, in whole units
  std::uint64_t held = 0;                      // by the request's pool
  std::uint64_t most = UINT64_MAX;             // the limit, or the device's size
  std::uint64_t limit = UINT64_MAX;            // UINT64_MAX: none
  std::uint64_t available = UINT64_MAX;        // left of the limits of the process and its groups
  std::uint64_t group_available = UINT64_MAX;  // left of the groups' limits; UINT64_MAX: in no group
  std::optional<std::uint64_t> free;           // on the device, if its driver says
  std::uint64_t headroom = 0;                  // the part of `free` to leave alone
  std::optional<std::uint64_t> owed_after;     // the live bytes that trigger a preallocation, if one is still to come
  std::uint64_t granule_bytes = UINT64_MAX;    // UINT64_MAX: the pool grows by slabs
  bool grows_by_slabs() const { return granule_bytes == UINT64_MAX; }
};

// Never less than the request needs, even if the limit or the device does not have that much.
std::uint64_t next_growth(const GrowthState &state);

}  // namespace ration::policy
