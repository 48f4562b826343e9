// Changes to single entries of the index. hole_index_pages.cc moves entries between pages; hole_index_find.cc searches.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include "pool/hole_index.h"

#include <algorithm>

namespace ration::pool {

std::uint64_t HoleIndex::at_least(const Inner &inner, std::int32_t extent) {
  std::uint64_t fitting = 0;
  for (std::uint32_t row = 0; row < kChildren; row += lanes::kLanes) {
    fitting |= std::uint64_t{lanes::at_least(inner.largest.data() + row, extent)} << row;
  }
  return fitting;
}

std::int32_t HoleIndex::largest_in(const Inner &inner) {
  std::int32_t largest = 0;
  for (std::uint32_t row = 0; row < kChildren; row += lanes::kLanes) {
    largest = std::max(largest, lanes::largest(inner.largest.data() + row));
  }
  return largest;
}

// The last child that begins at or below the unit, or else the first child. Does not branch on the keys: they are
// random.
std::uint32_t HoleIndex::child_around(const Inner &inner, std::uint64_t unit) {
  std::uint32_t base = 0;
  for (std::uint32_t left = inner.count; left > 1;) {
    const std::uint32_t half = left / 2;
    base += inner.from[base + half] <= unit ? half : 0;
    left -= half;
  }
  return base;
}

// REQUIRES: the tree has a root.
std::uint32_t HoleIndex::leaf_around(std::uint64_t unit) const {
  const Inner *inner = &inners_.at(root_);
  while (!inner->above_leaves) inner = &inners_.at(inner->child[child_around(*inner, unit)]);
  return inner->child[child_around(*inner, unit)];
}

// Raises the bounds of a leaf's ancestors: a hole that grew may be the largest one below each of them.
void HoleIndex::lift(const Leaf &leaf, std::int32_t extent) {
  Inner &parent = inners_.at(leaf.parent);
  if (extent <= parent.largest[leaf.index]) return;
  lanes::put(parent.largest.data(), leaf.index, extent);
  lift_above(parent, extent);
}

void HoleIndex::lift_above(const Inner &inner, std::int32_t extent) {
  for (const Inner *at = &inner; at->parent != 0;) {
    Inner &parent = inners_.at(at->parent);
    if (extent <= parent.largest[at->index]) return;
    lanes::put(parent.largest.data(), at->index, extent);
    at = &parent;
  }
}

// Appends an entry to a leaf that is not full.
void HoleIndex::place(std::uint32_t leaf_number, std::uint32_t node, std::int32_t extent) {
  Leaf &leaf = leaves_.at(leaf_number);
  const std::uint32_t slot = leaf.count++;
  lanes::put(leaf.extent.data(), slot, extent);
  leaf.start[slot] = static_cast<std::uint32_t>(nodes_.at(node).unit());
  leaf.node[slot] = node;
  nodes_.at(node).entry(leaf_number, slot);
}

void HoleIndex::add(std::uint32_t node, std::uint64_t units) {
  if (root_ == 0) start_root();
  const std::uint64_t unit = nodes_.at(node).unit();
  std::uint32_t number = leaf_around(unit);
  if (leaves_.at(number).count == kSlots) {
    const Leaf &upper = leaves_.at(split(number));
    const Inner &parent = inners_.at(upper.parent);
    if (unit >= parent.from[upper.index]) number = parent.child[upper.index];
  }
  const std::int32_t extent = capped(units);
  place(number, node, extent);
  raise_cached_hole(node, extent);
  ++entries_;
  lift(leaves_.at(number), extent);
}

HoleIndex::Leaf &HoleIndex::set(std::uint32_t node, std::int32_t extent) {
  Leaf &leaf = leaves_.at(nodes_.at(node).leaf());
  const std::uint32_t slot = nodes_.at(node).slot();
  lanes::put(leaf.extent.data(), slot, extent);
  leaf.start[slot] = static_cast<std::uint32_t>(nodes_.at(node).unit());
  return leaf;
}

void HoleIndex::resize(std::uint32_t node, std::uint64_t units) {
  const std::int32_t extent = capped(units);
  const Leaf &leaf = set(node, extent);
  raise_cached_hole(node, extent);
  lift(leaf, extent);
}

void HoleIndex::shrink(std::uint32_t node, std::uint64_t units) {
  const Leaf &leaf = set(node, capped(units));
  lanes::put(inners_.at(leaf.parent).largest.data(), leaf.index, lanes::largest(leaf.extent.data()));
}

void HoleIndex::close(std::uint32_t node) {
  shrink(node, 0);
  if (node == cached_hole_) cached_hole_ = 0;
}

void HoleIndex::raise_cached_hole(std::uint32_t node, std::int32_t extent) {
  if (cached_hole_ != 0 && extent >= cached_extent_ && nodes_.at(node).packed > nodes_.at(cached_hole_).packed)
    cached_hole_ = node;
}

void HoleIndex::remove(std::uint32_t node) {
  const std::uint32_t number = nodes_.at(node).leaf();
  const std::uint32_t slot = nodes_.at(node).slot();
  Leaf &leaf = leaves_.at(number);
  const std::uint32_t last = --leaf.count;
  if (slot != last) {
    lanes::put(leaf.extent.data(), slot, leaf.extent[last]);
    leaf.start[slot] = leaf.start[last];
    leaf.node[slot] = leaf.node[last];
    nodes_.at(leaf.node[last]).entry(number, slot);
  }
  lanes::put(leaf.extent.data(), last, 0);
  nodes_.at(node).entry(0, 0);
  if (node == cached_hole_) cached_hole_ = 0;
  --entries_;
  if (leaf.count <= kSparse) tidy(number);
}

}  // namespace ration::pool
