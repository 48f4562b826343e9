// The sizes of the granules of a preallocation, and of the home range in which they lie.
// Layer: pool, a leaf (standard library only). Threads: values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ration::pool::stitch {

// The most handles in a preallocation. Up to 4 GiB, handles are single pages (2 MiB), which suit any block; up to 16
// GiB, they have up to 4 pages. Above that there are half as many handles, because calls for large handles cost more:
// 60 GiB take handles of 64 MiB and under 78 ms on an H200 (tests/gpu/results). The free part of a granule with live
// blocks cannot back a block elsewhere, so granules are as small as possible without a slower preallocation.
// Design: design/granules.md#granule-sizes
constexpr std::uint64_t kMostHandles = 2048;
constexpr std::uint64_t kMostLargeHandles = 1024;
constexpr std::uint64_t kSmallPages = 4;

// The size of the home range for `bytes` of memory. The range is larger than the memory: while a view uses some of the
// memory, a part of the range has none.
constexpr std::uint64_t home_bytes(std::uint64_t bytes, std::uint64_t page_bytes) {
  return 4 * ((bytes + page_bytes - 1) / page_bytes + 1) * page_bytes;
}

// A pool with fewer granules could neither stitch nor give anything back.
constexpr std::uint64_t kLeastHandles = 16;

// The size of one granule if there are `bytes` in all. `asked`: the size to use, in whole pages and at most a sixteenth
// of `bytes`; 0: the size follows from the constants above.
constexpr std::uint64_t granule_bytes(std::uint64_t bytes, std::uint64_t page_bytes, std::uint64_t asked = 0) {
  const std::uint64_t pages = bytes / page_bytes;
  if (asked != 0) return page_bytes * std::max<std::uint64_t>(1, std::min(asked / page_bytes, pages / kLeastHandles));
  const auto among = [pages](std::uint64_t most) { return std::bit_ceil((pages + most - 1) / most); };
  const std::uint64_t small = among(kMostHandles);
  return page_bytes * std::max<std::uint64_t>(1, small <= kSmallPages ? small : among(kMostLargeHandles));
}

// The granules' sizes in the order of their places; the last one is the remainder.
inline std::vector<std::uint64_t> preallocation_sizes(std::uint64_t bytes, std::uint64_t page_bytes,
                                                      std::uint64_t asked = 0) {
  const std::uint64_t each = granule_bytes(bytes, page_bytes, asked);
  std::vector<std::uint64_t> sizes(bytes / each, each);
  if (const std::uint64_t rest = bytes % each / page_bytes * page_bytes; rest != 0) sizes.push_back(rest);
  return sizes;
}

}  // namespace ration::pool::stitch
