// How much a pool takes when it grows for a request.
// Layer: policy/block_pool. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

namespace ration::policy {

// All in bytes.
struct GrowthState {
  std::uint64_t minimum = 0;                   // what the request needs, in whole units
  std::uint64_t held = 0;                      // by its pool
  std::uint64_t most = UINT64_MAX;             // the limit, or the device's size
  std::uint64_t limit = UINT64_MAX;            // UINT64_MAX: none
  std::uint64_t available = UINT64_MAX;        // of the limits of process and groups
  std::uint64_t group_available = UINT64_MAX;  // UINT64_MAX: in no group
  std::optional<std::uint64_t> free;           // of the device, as far as its driver says
  std::uint64_t headroom = 0;                  // of that, which is left alone
  std::optional<std::uint64_t> owed_after;     // a preallocation is still to come, after so many live bytes
  std::uint64_t granule_bytes = UINT64_MAX;    // how large granules are; UINT64_MAX: it grows by slabs
  bool grows_by_slabs() const { return granule_bytes == UINT64_MAX; }
};

// Never less than the request needs, though limit or device may not have so much.
std::uint64_t next_growth(const GrowthState &state);

}  // namespace ration::policy
