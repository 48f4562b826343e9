// Searches of the hole index.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>
#include <bit>
#include <limits>

#include "pool/hole_index.h"

namespace ration::pool {

// --- oversized holes ---

void HoleIndex::collect_oversized(const Inner &inner, std::uint64_t units, OversizedHoles &oversized) const {
  for (std::uint64_t left = at_least(inner, kCap); left != 0; left &= left - 1) {
    const auto child = static_cast<std::uint32_t>(std::countr_zero(left));
    if (!inner.above_leaves) {
      collect_oversized(inners_.at(inner.child[child]), units, oversized);
      continue;
    }
    const Leaf &leaf = leaves_.at(inner.child[child]);
    for (std::uint32_t slots = lanes::at_least(leaf.extent.data(), kCap); slots != 0; slots &= slots - 1) {
      const std::uint32_t node = leaf.node[static_cast<std::uint32_t>(std::countr_zero(slots))];
      oversized.largest = std::max(oversized.largest, size_of(nodes_, node));
      if (size_of(nodes_, node) < units) continue;
      oversized.lowest = oversized.lowest == 0 ? node : oversized.lowest;
      oversized.highest = node;
    }
  }
}

HoleIndex::OversizedHoles HoleIndex::oversized_holes(std::uint64_t units) const {
  OversizedHoles oversized;
  if (root_ != 0) collect_oversized(inners_.at(root_), units, oversized);
  return oversized;
}

std::int32_t HoleIndex::largest_below(const Inner &inner, std::int32_t known) const {
  for (std::uint64_t left = at_least(inner, known + 1); left != 0; left &= left - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
    if (inner.largest[index] <= known) continue;
    known = inner.above_leaves ? std::max(known, lanes::largest(leaves_.at(inner.child[index]).extent.data()))
                               : largest_below(inners_.at(inner.child[index]), known);
    if (known == kCap) break;
  }
  return known;
}

std::uint64_t HoleIndex::largest() const {
  if (root_ == 0) return 0;
  const std::int32_t largest = largest_below(inners_.at(root_), 0);
  return largest != kCap ? static_cast<std::uint64_t>(largest) : oversized_holes(0).largest;
}

// --- searches ---

struct HoleIndex::Search {
  std::int32_t extent;  // the smallest hole that fits
  bool high;
  std::uint32_t left;  // holes still to be examined
  std::uint32_t best = 0;
  std::int32_t best_extent = 0;
};

// Both overloads return true once enough holes have been examined. Within a leaf, holes are ordered by the low halves
// of their unit numbers. In a leaf that spans a multiple of 2 TiB this is not the address order, which only affects the
// choice.
bool HoleIndex::search(const Leaf &leaf, Search &search) {
  for (std::uint32_t fitting = lanes::at_least(leaf.extent.data(), search.extent); fitting != 0;) {
    auto first = static_cast<std::uint32_t>(std::countr_zero(fitting));
    for (std::uint32_t others = fitting & (fitting - 1); others != 0; others &= others - 1) {
      const auto slot = static_cast<std::uint32_t>(std::countr_zero(others));
      first = (leaf.start[slot] > leaf.start[first]) == search.high ? slot : first;
    }
    fitting &= ~(std::uint32_t{1} << first);
    if (search.best == 0 || leaf.extent[first] < search.best_extent) {
      search.best = leaf.node[first];
      search.best_extent = leaf.extent[first];
    }
    if (--search.left == 0) return true;
  }
  return false;
}

// Lowers the bound to the size of the largest hole below the child.
void HoleIndex::lower(Inner &inner, std::uint32_t index) {
  const std::uint32_t child = inner.child[index];
  const std::int32_t largest =
      inner.above_leaves ? lanes::largest(leaves_.at(child).extent.data()) : largest_in(inners_.at(child));
  lanes::put(inner.largest.data(), index, largest);
}

bool HoleIndex::search(Inner &inner, Search &search) {
  for (std::uint64_t fitting = at_least(inner, search.extent); fitting != 0;) {
    const auto index =
        static_cast<std::uint32_t>(search.high ? 63 - std::countl_zero(fitting) : std::countr_zero(fitting));
    fitting &= ~(std::uint64_t{1} << index);
    const std::uint32_t child = inner.child[index];
    const std::uint32_t left = search.left;
    if (inner.above_leaves ? this->search(leaves_.at(child), search) : this->search(inners_.at(child), search)) {
      return true;
    }
    if (search.left == left) lower(inner, index);
  }
  return false;
}

std::uint32_t HoleIndex::search_from_root(Search search) {
  if (root_ != 0) this->search(inners_.at(root_), search);
  return search.best;
}

// Serves nearly every request. Most programs use one hole again and again, and for them the cached hole answers at
// once: a LIFO pair takes 28 ns with it and 52 ns without. For other programs it costs nothing to maintain.
std::uint32_t HoleIndex::find_highest(std::int32_t extent) {
  if (cached_hole_ != 0 && extent >= cached_extent_ &&
      size_of(nodes_, cached_hole_) >= static_cast<std::uint64_t>(extent))
    return cached_hole_;
  const std::uint32_t found = search_from_root({extent, true, 1});
  if (found != last_found_) {
    last_found_ = found;
    times_found_ = 0;
    cached_hole_ = 0;
  } else if (cached_hole_ == found || ++times_found_ >= kOften) {
    cached_hole_ = found;
    cached_extent_ = extent;
  }
  return found;
}

std::uint32_t HoleIndex::find(std::uint64_t units, Side side, std::uint32_t among) {
  const bool high = side == Side::kHigh;
  const std::int32_t extent = capped(units);
  if (extent == kCap) return high ? oversized_holes(units).highest : oversized_holes(units).lowest;
  return high && among == 1 ? find_highest(extent) : search_from_root({extent, high, among});
}

std::uint32_t HoleIndex::leaf_before(std::uint32_t leaf_number) const {
  const Leaf &leaf = leaves_.at(leaf_number);
  const Inner *inner = &inners_.at(leaf.parent);
  if (leaf.index != 0) return inner->child[leaf.index - 1];
  while (inner->parent != 0 && inner->index == 0) inner = &inners_.at(inner->parent);
  if (inner->parent == 0) return 0;
  inner = &inners_.at(inners_.at(inner->parent).child[inner->index - 1]);
  while (!inner->above_leaves) inner = &inners_.at(inner->child[inner->count - 1]);
  return inner->child[inner->count - 1];
}

std::uint32_t HoleIndex::find_before(std::uint64_t unit) const {
  if (root_ == 0) return 0;
  std::uint32_t best = 0;
  std::uint64_t start = 0;
  for (std::uint32_t number = leaf_around(unit); number != 0 && best == 0; number = leaf_before(number)) {
    const Leaf &leaf = leaves_.at(number);
    for (std::uint32_t slot = 0; slot < leaf.count; ++slot) {
      const std::uint64_t here = nodes_.at(leaf.node[slot]).unit();
      if (here > unit || (best != 0 && here < start)) continue;
      best = leaf.node[slot];
      start = here;
    }
  }
  return best;
}

// --- the search for a hole that holds a run of equal blocks ---

struct HoleIndex::Tiling {
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

  std::int32_t extent;    // size of one block
  std::uint64_t inverse;  // 2^32 / extent, rounded down
  std::int32_t largest;   // the largest extent of all holes
  std::int32_t left;      // holes still to be examined
  std::uint32_t best = 0;
  std::int32_t best_rest = kNone;

  // The more blocks fit, the larger the tolerated remainder: one part in kTolerance of the hole.
  static constexpr std::int32_t kTolerance = 64;
  // The remainder when the hole is filled with such blocks. Multiplies because divisions would dominate the search.
  [[nodiscard]] std::int32_t rest_of(std::int32_t hole) const {
    const auto blocks = static_cast<std::int32_t>(static_cast<std::uint64_t>(hole) * inverse >> 32);  // or one fewer
    const std::int32_t rest = hole - blocks * extent;
    return rest < extent ? rest : rest - extent;
  }
};

// Both overloads return true once enough holes have been examined. They do not branch on the sizes, which are random.
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

// Returns the size of the largest hole below a page, and lowers the bounds on it that were too high.
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
