// Moves entries between the pages of the index: splits and merges, up to the root.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>
#include <utility>

#include "pool/hole_index.h"

namespace ration::pool {

// --- leaves ---

std::uint32_t HoleIndex::fresh_leaf() {
  const std::uint32_t number = leaves_.take();
  Leaf &leaf = leaves_.at(number);
  leaf.extent.fill(0);
  leaf.count = 0;
  return number;
}

std::uint32_t HoleIndex::fresh_inner(bool above_leaves) {
  const std::uint32_t number = inners_.take();
  Inner &inner = inners_.at(number);
  inner.largest.fill(0);
  inner.parent = 0;
  inner.count = 0;
  inner.index = 0;
  inner.above_leaves = above_leaves;
  return number;
}

void HoleIndex::start_root() {
  root_ = fresh_inner(true);
  height_ = 1;
  insert_child(inners_.at(root_), 0, 0, 0, fresh_leaf());
}

// Moves the upper half of the entries to a new leaf.
std::uint32_t HoleIndex::split(std::uint32_t leaf_number) {
  Leaf &leaf = leaves_.at(leaf_number);
  if (inners_.at(leaf.parent).count == kChildren) split_inner(leaf.parent);
  struct Entry {
    std::uint64_t unit;
    std::uint32_t node;
    std::int32_t extent;
  };
  std::array<Entry, kSlots> entries;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    entries[slot] = {nodes_.at(leaf.node[slot]).unit(), leaf.node[slot], leaf.extent[slot]};
  }
  const auto middle = entries.begin() + kSlots / 2;
  std::nth_element(entries.begin(), middle, entries.end(),
                   [](const Entry &one, const Entry &other) { return one.unit < other.unit; });
  leaf.extent.fill(0);
  leaf.count = 0;
  const std::uint32_t upper_number = fresh_leaf();
  for (auto entry = entries.begin(); entry != middle; ++entry) place(leaf_number, entry->node, entry->extent);
  for (auto entry = middle; entry != entries.end(); ++entry) place(upper_number, entry->node, entry->extent);
  Inner &parent = inners_.at(leaf.parent);
  lanes::put(parent.largest.data(), leaf.index, lanes::largest(leaf.extent.data()));
  const std::int32_t upper_largest = lanes::largest(leaves_.at(upper_number).extent.data());
  insert_child(parent, leaf.index + 1, middle->unit, upper_largest, upper_number);
  return upper_number;
}

// Merges a sparse leaf with a sibling if the entries of both fit into one.
void HoleIndex::tidy(std::uint32_t leaf_number) {
  const Leaf &leaf = leaves_.at(leaf_number);
  Inner &parent = inners_.at(leaf.parent);
  const auto fits = [&](std::uint32_t index) { return leaf.count + leaves_.at(parent.child[index]).count <= kJoined; };
  if (leaf.index + 1 < parent.count && fits(leaf.index + 1)) {
    join(parent, leaf.index);
  } else if (leaf.index != 0 && fits(leaf.index - 1)) {
    join(parent, leaf.index - 1);
  } else if (leaf.count == 0) {
    const std::uint32_t index = leaf.index;
    leaves_.give(leaf_number);
    erase_child(parent, index);
  }
}

void HoleIndex::join(Inner &parent, std::uint32_t lower) {
  const std::uint32_t gone = parent.child[lower + 1];
  const Leaf &upper = leaves_.at(gone);
  for (std::uint32_t slot = 0; slot < upper.count; ++slot) {
    place(parent.child[lower], upper.node[slot], upper.extent[slot]);
  }
  leaves_.give(gone);
  drop_joined(parent, lower);
}

// --- inner pages ---

// Updates the parent and index of the children from `from_index` on.
void HoleIndex::adopt(Inner &inner, std::uint32_t from_index) {
  const auto place_in_parent = [&](auto &page, std::uint32_t index) {
    page.parent = inners_.index_of(inner);
    page.index = index;
  };
  for (std::uint32_t index = from_index; index < inner.count; ++index) {
    const std::uint32_t child = inner.child[index];
    inner.above_leaves ? place_in_parent(leaves_.at(child), index) : place_in_parent(inners_.at(child), index);
  }
}

void HoleIndex::insert_child(Inner &inner, std::uint32_t index, std::uint64_t from, std::int32_t largest,
                             std::uint32_t child) {
  const auto shift = [&](auto &row) {
    std::copy_backward(row.begin() + index, row.begin() + inner.count, row.begin() + inner.count + 1);
  };
  // A hole that moved may start outside its leaf's separators, but the separators stay in order.
  if (index > 1) from = std::max(from, inner.from[index - 1]);
  if (index < inner.count) from = std::min(from, inner.from[index]);
  shift(inner.largest);
  shift(inner.from);
  shift(inner.child);
  inner.largest[index] = largest;
  inner.from[index] = from;
  inner.child[index] = child;
  ++inner.count;
  adopt(inner, index);
}

// Splits a full inner page. The children in its upper half get another parent.
void HoleIndex::split_inner(std::uint32_t number) {
  Inner &inner = inners_.at(number);
  if (inner.parent == 0) {
    root_ = fresh_inner(false);
    ++height_;
    insert_child(inners_.at(root_), 0, 0, largest_in(inner), number);
  } else if (inners_.at(inner.parent).count == kChildren) {
    split_inner(inner.parent);
  }
  const std::uint32_t upper_number = fresh_inner(inner.above_leaves);
  Inner &upper = inners_.at(upper_number);
  append(inner, kChildren / 2, upper);
  Inner &parent = inners_.at(inner.parent);
  lanes::put(parent.largest.data(), inner.index, largest_in(inner));
  insert_child(parent, inner.index + 1, upper.from[0], largest_in(upper), upper_number);
}

void HoleIndex::append(Inner &from, std::uint32_t first, Inner &to) {
  const std::uint32_t moved = from.count - first;
  const auto move = [&](const auto &source, auto &target) {
    std::copy_n(source.begin() + first, moved, target.begin() + to.count);
  };
  move(from.largest, to.largest);
  move(from.from, to.from);
  move(from.child, to.child);
  std::fill_n(from.largest.begin() + first, moved, 0);
  from.count = first;
  to.count += moved;
  adopt(to, to.count - moved);
}

void HoleIndex::erase_child(Inner &inner, std::uint32_t index) {
  const auto shift = [&](auto &row) {
    std::copy(row.begin() + index + 1, row.begin() + inner.count, row.begin() + index);
  };
  shift(inner.largest);
  shift(inner.from);
  shift(inner.child);
  --inner.count;
  inner.largest[inner.count] = 0;
  adopt(inner, index);
  tidy_inner(inner);
}

// Updates the parent after the child next to `lower` was merged into `lower`.
void HoleIndex::drop_joined(Inner &parent, std::uint32_t lower) {
  lanes::put(parent.largest.data(), lower, std::max(parent.largest[lower], parent.largest[lower + 1]));
  lanes::put(parent.largest.data(), lower + 1, 0);
  erase_child(parent, lower + 1);
}

void HoleIndex::tidy_inner(Inner &inner) {
  if (inner.parent == 0) {
    // A root with only one inner page below it, or with nothing below it, is one level too many.
    while (root_ != 0 && inners_.at(root_).count <= 1) {
      const Inner &lone = inners_.at(root_);
      if (lone.count == 1 && lone.above_leaves) return;
      const std::uint32_t below = lone.count == 0 ? 0 : lone.child[0];
      if (below != 0) inners_.at(below).parent = 0;
      inners_.give(std::exchange(root_, below));
      --height_;
    }
    return;
  }
  Inner &parent = inners_.at(inner.parent);
  if (inner.count > kChildren / 4) return;
  if (inner.count == 0) {
    const std::uint32_t index = inner.index;
    inners_.give(parent.child[index]);
    return erase_child(parent, index);
  }
  const auto fits = [&](std::uint32_t index) {
    return inner.count + inners_.at(parent.child[index]).count <= kChildren * 3 / 4;
  };
  std::uint32_t lower = inner.index;
  if (lower + 1 >= parent.count || !fits(lower + 1)) {
    if (lower == 0 || !fits(lower - 1)) return;
    --lower;
  }
  const std::uint32_t gone = parent.child[lower + 1];
  Inner &upper = inners_.at(gone);
  upper.from[0] = parent.from[lower + 1];  // the separator of a first child is not maintained anywhere else
  Inner &joined = inners_.at(parent.child[lower]);
  append(upper, 0, joined);
  for (std::uint32_t index = 2; index < joined.count; ++index) {
    joined.from[index] = std::max(joined.from[index], joined.from[index - 1]);
  }
  inners_.give(gone);
  drop_joined(parent, lower);
}

bool HoleIndex::reserve(std::size_t entries) {
  const std::size_t leaves = entries / (kSlots / 2) + 2;
  return leaves_.prepare(leaves) && inners_.prepare(leaves / (kChildren / 2) + 3);
}

}  // namespace ration::pool
