// The size of one piece of device memory that replaces several free ones.
// Layer: policy/block_pool. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/block_pool/context_pool.h"

namespace ration::policy {

// A request may wait longer than a fence takes on an idle device, so that pieces can become one. After such a wait,
// none follows until this many times its length has passed.
inline constexpr std::uint64_t kWaitsApart = 100;

// Free slabs of a pool, or chunks of a driver's pool, and how many blocks of one size fit in them.
struct FreePieces {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

// The size of the piece that replaces the free ones; 0 if they stay as they are. `rest`: unreserved bytes of the limit,
// which the piece may include. A single piece that could not hold the request stays: it is given back when the pool
// grows.
constexpr std::uint64_t merged_bytes(const FreePieces &free, std::uint64_t rest, std::uint64_t block_bytes) {
  constexpr std::uint64_t kSmallRest = 8;  // a rest that is this many times smaller joins the pieces
  const std::uint64_t all = whole_units(free.bytes + rest);
  if (free.count == 0 || all < block_bytes || (free.count == 1 && free.blocks == 0)) {
    return 0;
  }
  if (rest >= pool::kUnitBytes && rest < free.bytes / kSmallRest) {
    return all;
  }
  if (all / block_bytes > free.blocks + rest / block_bytes) {
    const std::uint64_t whole = (free.bytes + block_bytes - 1) / block_bytes * block_bytes;
    return std::min(std::max(whole, free.bytes), all);
  }
  return free.count > 1 ? free.bytes : 0;
}

}  // namespace ration::policy
