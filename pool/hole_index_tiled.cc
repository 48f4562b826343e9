// The search for a hole that holds a run of equal blocks.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <bit>
#include <limits>

#include "pool/hole_index.h"

namespace ration::pool {

struct HoleIndex::Tiling {
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

  std::int32_t extent;    // of one block
  std::uint64_t inverse;  // of the extent, in units of 2^-32, rounded down
  std::int32_t largest;   // extent of all holes
  std::int32_t left;      // holes yet to examine
  std::uint32_t best = 0;
  std::int32_t best_rest = kNone;

  // The more blocks fit, the larger the tolerated remainder: one part in kTolerance of the hole.
  static constexpr std::int32_t kTolerance = 64;
  // The remainder of a hole full of such blocks. A multiplication: divisions would dominate the search.
  [[nodiscard]] std::int32_t rest_of(std::int32_t hole) const {
    const auto blocks = static_cast<std::int32_t>(static_cast<std::uint64_t>(hole) * inverse >> 32);  // or one less
    const std::int32_t rest = hole - blocks * extent;
    return rest < extent ? rest : rest - extent;
  }
};

// Both return true once enough holes have been examined. No branch on the sizes: they are random.
bool HoleIndex::tile(const Leaf &leaf, Tiling &tiling) {
  std::uint32_t fitting = lanes::at_least(leaf.extent.data(), tiling.extent);
  tiling.left -= std::popcount(fitting);
  for (; fitting != 0; fitting &= fitting - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(fitting));
    const std::int32_t hole = leaf.extent[slot];
    const std::int32_t rest =
        hole == tiling.largest ? Tiling::kNone - 1 : tiling.rest_of(hole) - hole / Tiling::kTolerance;
    const bool is_better = rest < tiling.best_rest;
    tiling.best = is_better ? leaf.node[slot] : tiling.best;
    tiling.best_rest = is_better ? rest : tiling.best_rest;
  }
  return tiling.left <= 0;
}

bool HoleIndex::tile(Inner &inner, Tiling &tiling) {
  for (std::uint64_t fitting = at_least(inner, tiling.extent); fitting != 0; fitting &= fitting - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(fitting));
    const std::uint32_t child = inner.child[index];
    const std::int32_t left = tiling.left;
    if (inner.above_leaves ? tile(leaves_.at(child), tiling) : tile(inners_.at(child), tiling)) return true;
    if (tiling.left == left) lower(inner, index);
  }
  return false;
}

// The largest hole below a page; lowers the bounds that were too high.
std::int32_t HoleIndex::lower_to_largest(Inner &inner) {
  for (;;) {
    const std::int32_t largest = largest_in(inner);
    const auto index = static_cast<std::uint32_t>(std::countr_zero(at_least(inner, largest)));
    if (largest == 0) return 0;
    if (!inner.above_leaves) (void)lower_to_largest(inners_.at(inner.child[index]));
    lower(inner, index);
    if (inner.largest[index] == largest) return largest;
  }
}

std::uint32_t HoleIndex::find_tiled(std::uint64_t units, std::uint32_t among) {
  if (root_ == 0 || capped(units) == kCap) return find(units, Side::kLow);
  Tiling tiling{capped(units), (std::uint64_t{1} << 32) / units, lower_to_largest(inners_.at(root_)),
                static_cast<std::int32_t>(among)};
  tile(inners_.at(root_), tiling);
  return tiling.best;
}

}  // namespace ration::pool
