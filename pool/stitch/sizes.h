// How large the granules of a preallocation are, and the range in which they lie.
// Layer: pool, a leaf (standard library only). Threads: values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ration::pool::stitch {

// A preallocation has at most so many handles: single pages (2 MiB), which serve any block, up to 4 GiB, of up to 4
// pages up to 16 GiB, then half as many, whose calls cost more: 64 MiB for 60 GiB, under 78 ms on an H200
// (tests/gpu/results). What a granule holds beside a few live blocks serves no other granule's block, so they are as
// small as that time allows.
// Design: design/granules.md#granule-sizes
constexpr std::uint64_t kMostHandles = 2048;
constexpr std::uint64_t kMostLargeHandles = 1024;
constexpr std::uint64_t kSmallPages = 4;

// Of the home range for so much memory: larger, because parts of it are without memory while that is in views.
constexpr std::uint64_t home_bytes(std::uint64_t bytes, std::uint64_t page_bytes) {
  return 4 * ((bytes + page_bytes - 1) / page_bytes + 1) * page_bytes;
}

// A pool of few granules could neither stitch nor give anything back.
constexpr std::uint64_t kLeastHandles = 16;

// Of one granule where `bytes` is all. `asked`: its size, in whole pages, and at most a sixteenth of all; 0: by the
// rule above.
constexpr std::uint64_t granule_bytes(std::uint64_t bytes, std::uint64_t page_bytes, std::uint64_t asked = 0) {
  const std::uint64_t pages = bytes / page_bytes;
  if (asked != 0) return page_bytes * std::max<std::uint64_t>(1, std::min(asked / page_bytes, pages / kLeastHandles));
  const auto among = [pages](std::uint64_t most) { return std::bit_ceil((pages + most - 1) / most); };
  const std::uint64_t small = among(kMostHandles);
  return page_bytes * std::max<std::uint64_t>(1, small <= kSmallPages ? small : among(kMostLargeHandles));
}

// In the order of their places; the last one is what is left.
inline std::vector<std::uint64_t> preallocation_sizes(std::uint64_t bytes, std::uint64_t page_bytes,
                                                      std::uint64_t asked = 0) {
  const std::uint64_t each = granule_bytes(bytes, page_bytes, asked);
  std::vector<std::uint64_t> sizes(bytes / each, each);
  if (const std::uint64_t rest = bytes % each / page_bytes * page_bytes; rest != 0) sizes.push_back(rest);
  return sizes;
}

}  // namespace ration::pool::stitch
