// Simulates a slab under a placement policy, to find placements and the smallest slab.
// Layer: test shapes, over the trace of logs/replay. Threads: calls are independent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "logs/replay/trace.h"
#include "shapes/policy.h"

namespace ration::shapes {

class Arena {
 public:
  // Granule 0 is never allocated, as in the pool. REQUIRES: `bytes` covers at least two granules.
  Arena(std::uint64_t bytes, Policy &policy);
  // The granule where the block starts, or nothing. REQUIRES: id is not live.
  std::optional<std::uint64_t> allocate(std::uint32_t id, std::uint64_t bytes);
  // REQUIRES: id is live.
  void free(std::uint32_t id);
  [[nodiscard]] std::size_t holes() const { return holes_.size(); }

 private:
  struct Block {
    std::uint64_t start, granules;
    std::uint64_t born;  // the clock at its allocation
  };
  void erase(std::size_t hole);
  void set(std::size_t hole, std::uint64_t start, std::uint64_t granules);

  Policy &policy_;
  Holes holes_;
  std::vector<Block> blocks_;  // by id
  std::uint64_t changes_ = 0;
  std::uint64_t clock_ = 0;  // number of granules allocated so far
  std::uint64_t live_ = 0;   // granules
};

struct Smallest {
  std::uint64_t bytes;
  std::size_t most_holes;  // during its replay
};
// Found by pool_replay's bisection, to within 0.05 %.
Smallest smallest_arena(const pool::replay::Trace &trace, const NamedPolicy &policy);

}  // namespace ration::shapes
