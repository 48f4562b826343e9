#include "pool/growth_size.h"

#include <algorithm>

namespace ration::pool {
namespace {

constexpr std::uint64_t kStep = kFirstSlabBytes;
// A slab for blocks of one size has room for this many bytes of such blocks, and loses only part of its last unit.
constexpr std::uint64_t kLeastOfOneSize = 32U << 20U;
// If fewer blocks of one size than this fit under the limit, each slab holds a whole number of them. Otherwise the
// unused rests of all slabs would in the end cost a block.
// Design: design/granules.md#whole-slabs
constexpr std::uint64_t kFewBlocks = 1024;
constexpr std::uint64_t kSmallPart = 32;    // of the limit, before preallocation
constexpr std::uint64_t kLargestPart = 16;  // of a limit: a slab with one small block in it cannot go back

}  // namespace

std::uint64_t next_growth(const GrowthState &state) {
  const std::uint64_t minimum = state.minimum;
  const bool few = minimum + kUnitBytes > state.most / kFewBlocks;
  const auto whole = [&](std::uint64_t bytes) {
    return few ? bytes / minimum * minimum : (bytes + kStep - 1) / kStep * kStep;
  };
  // 2, 4, 8 MiB and so on: each growth is as large as all slabs before it, and one step more.
  std::uint64_t wanted = std::max(minimum, state.held + kStep);
  if (state.limit != UINT64_MAX) {
    wanted = std::min(wanted, std::max({minimum, state.limit / kLargestPart, kStep}));
  }
  if (state.owed_after) {
    // The preallocation is still to come, and what stays free in this slab will be missing from it. The first granules
    // are only as large as a block needs, and they go back one by one.
    const bool first_granules = !state.grows_by_slabs() && state.held < *state.owed_after;
    const std::uint64_t small = first_granules ? 0 : std::min(*state.owed_after, state.most / kSmallPart);
    wanted = std::min(wanted, std::max({minimum, small, kStep}));
  }
  std::uint64_t least =
      std::min(whole(std::max(kLeastOfOneSize / minimum, std::uint64_t{1}) * minimum), whole_units(state.available));
  // In a group, takes at most an eighth of what is left, in whole blocks of this request's size.
  if (const std::uint64_t eighth = state.group_available / 8; eighth < wanted) {
    wanted = std::max(minimum, eighth / minimum * minimum);
    least = 0;
  }
  if (!state.grows_by_slabs()) {
    wanted = std::min(wanted, std::max(minimum, state.granule_bytes));
  }
  wanted = whole(wanted);
  std::uint64_t most = state.available;
  if (state.free) {
    most = std::min(most, *state.free - std::min(*state.free, state.headroom));
    least = std::min(least, whole_units(*state.free));
  }
  // Never less than the driver takes for the request in any case. A slab that must use the headroom has room for
  // several blocks: one of 2 MiB would hold only two blocks of 1 MiB.
  const std::uint64_t floor = whole(minimum);
  const std::uint64_t bytes = few ? whole(std::min(wanted, most)) : whole_units(std::min(wanted, most));
  return bytes >= floor ? bytes : std::max(floor, std::min(least, wanted));
}

}  // namespace ration::pool
