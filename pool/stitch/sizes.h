// How large the granules of a preallocation are, and the range in which they lie.
// Layer: pool, a leaf (standard library only). Threads: values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ration::pool::stitch {

// Up to here a preallocation is of single pages, which serve any block: about 70 ms of driver time at the published
// cost of a handle (pool/replay/granule_costs.h). Above, granules grow with the square of the memory, so that their
// number falls: what a granule holds beside a few live blocks can serve only what fits between them, and that is less
// of all the larger the memory is for its blocks.
constexpr std::uint64_t kSinglePages = 1024;
constexpr std::uint64_t kLargestGranule = std::uint64_t{1} << 30;

// Of the home range for so much memory: larger, because parts of it are without memory while that is in views.
constexpr std::uint64_t home_bytes(std::uint64_t bytes, std::uint64_t page_bytes) {
  return 4 * ((bytes + page_bytes - 1) / page_bytes + 1) * page_bytes;
}

// In the order of their places; the last one is what is left. `asked`: the size of each, in whole pages; 0: by the rule
// above.
inline std::vector<std::uint64_t> preallocation_sizes(std::uint64_t bytes, std::uint64_t page_bytes,
                                                      std::uint64_t asked = 0) {
  const std::uint64_t times = bytes / page_bytes / kSinglePages + 1;
  const std::uint64_t most = std::max<std::uint64_t>(1, kLargestGranule / page_bytes);
  const std::uint64_t by_rule = page_bytes * std::min(std::bit_ceil(times * times), std::bit_floor(most));
  const std::uint64_t each = asked == 0 ? by_rule : std::max(page_bytes, asked / page_bytes * page_bytes);
  std::vector<std::uint64_t> sizes(bytes / each, each);
  if (const std::uint64_t rest = bytes % each / page_bytes * page_bytes; rest != 0) sizes.push_back(rest);
  return sizes;
}

}  // namespace ration::pool::stitch
