// The invariants of the index: bounds, separators, and links between nodes and entries. Threads: the caller locks.
#include <string>

#include "pool/hole_index.h"

namespace ration::pool {

std::string HoleIndex::check(std::uint64_t unflushed_units) const {
  if (root_ == 0) return height_ != 0 || entries_ != 0 ? "an empty index has entries" : "";
  if (inners_.at(root_).parent != 0) return "the root has a parent";
  Seen seen{unflushed_units};
  if (std::string wrong = check_inner(inners_.at(root_), height_, seen); !wrong.empty()) return wrong;
  if (cached_hole_ != 0 && (!nodes_.at(cached_hole_).is_hole() || nodes_.at(cached_hole_).leaf() == 0))
    return "the cached hole is no hole in the index";
  return seen.entries == entries_ ? "" : "entries are miscounted";
}

std::string HoleIndex::check_inner(const Inner &inner, std::uint32_t height, Seen &seen) const {
  const auto wrong = [&](const char *what) { return "a page at height " + std::to_string(height) + " " + what; };
  if (inner.count == 0 || inner.count > kChildren) return wrong("has an impossible count");
  if (inner.above_leaves != (height == 1)) return wrong("is at a wrong level");
  for (std::uint32_t index = 0; index < kChildren; ++index) {
    if (index >= inner.count) {
      if (inner.largest[index] != 0) return wrong("has a bound without a child");
      continue;
    }
    if (index > 1 && inner.from[index] < inner.from[index - 1]) return wrong("has separators out of order");
    if (inner.above_leaves) {
      const Leaf &leaf = leaves_.at(inner.child[index]);
      if (leaf.parent != inners_.index_of(inner) || leaf.index != index) return wrong("has a leaf with another parent");
      if (lanes::largest(leaf.extent.data()) > inner.largest[index]) return wrong("has a bound below its largest hole");
      if (std::string deeper = check_leaf(inner.child[index], seen); !deeper.empty()) return deeper;
    } else {
      const Inner &below = inners_.at(inner.child[index]);
      if (below.parent != inners_.index_of(inner) || below.index != index)
        return wrong("has a child with another parent");
      if (largest_in(below) > inner.largest[index]) return wrong("has a bound below its largest hole");
      if (std::string deeper = check_inner(below, height - 1, seen); !deeper.empty()) return deeper;
    }
  }
  return "";
}

std::string HoleIndex::check_leaf(std::uint32_t number, Seen &seen) const {
  const Leaf &leaf = leaves_.at(number);
  const auto wrong = [&](const char *what) { return "leaf " + std::to_string(number) + " " + what; };
  if (leaf.count == 0 || leaf.count > kSlots) return wrong("has an impossible count");
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const std::int32_t extent = leaf.extent[slot];
    if (slot >= leaf.count) {
      if (extent != 0) return wrong("has a hole without an entry");
      continue;
    }
    ++seen.entries;
    const Node &node = nodes_.at(leaf.node[slot]);
    if (node.leaf() != number || node.slot() != slot) return wrong("has a node with another entry");
    const bool is_unflushed = seen.unflushed_units != 0 && leaf.node[slot] == cached_hole_;
    const std::uint64_t units = is_unflushed     ? seen.unflushed_units
                                : node.is_hole() ? size_of(nodes_, leaf.node[slot])
                                                 : 0;
    if (extent != capped(units)) return wrong("has a wrong size");
  }
  return "";
}

}  // namespace ration::pool
