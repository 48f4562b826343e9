// The size of one piece of device memory that replaces several free ones.
// Layer: pool, a leaf (standard library only). Threads: any.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pool/growth_size.h"
#include "pool/shared_pool.h"

namespace ration::pool {

// Describes free slabs of a pool, or free chunks of a driver's pool, and how many blocks of one size fit in them.
struct FreePieces {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

// The size of the piece that replaces the free ones; 0 if they stay as they are. `rest`: unreserved bytes of the limit,
// which the piece may include. A single free piece that is too small for the request is not replaced: it is returned
// when the pool grows.
constexpr std::uint64_t merged_bytes(const FreePieces &free, std::uint64_t rest, std::uint64_t block_bytes) {
  constexpr std::uint64_t kSmallRest = 8;  // a rest is included if it is this many times smaller than the pieces
  const std::uint64_t all = whole_units(free.bytes + rest);
  if (free.count == 0 || all < block_bytes || (free.count == 1 && free.blocks == 0)) {
    return 0;
  }
  if (rest >= kUnitBytes && rest < free.bytes / kSmallRest) {
    return all;
  }
  if (all / block_bytes > free.blocks + rest / block_bytes) {
    const std::uint64_t whole = (free.bytes + block_bytes - 1) / block_bytes * block_bytes;
    return std::min(std::max(whole, free.bytes), all);
  }
  return free.count > 1 ? free.bytes : 0;
}

// Adds up all slabs of a pool that have no live block.
inline FreePieces free_slabs(const SharedPool &pool, std::uint64_t block_bytes) {
  FreePieces free;
  Slab slab{};
  for (Address from = 0; pool.slabs(from, &slab, 1) == 1; from = slab.address + 1) {
    Block first{};
    if (pool.live_blocks(slab.address, &first, 1) == 0 || first.address >= slab.address + slab.bytes) {
      ++free.count;
      free.bytes += slab.bytes;
      free.blocks += slab.bytes / block_bytes;
    }
  }
  return free;
}

}  // namespace ration::pool
