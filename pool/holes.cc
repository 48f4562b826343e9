// Splits holes into blocks and coalesces freed blocks; keeps index and bins up to date.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include "pool/pool.h"

namespace ration::pool {

std::uint32_t Pool::new_node(std::uint64_t unit, std::uint32_t previous, std::uint32_t next, Node::Kind kind) noexcept {
  const std::uint32_t number = nodes_.take();
  Node &node = nodes_.at(number);
  node.packed = 0;
  node.unit(unit);
  node.place = static_cast<std::uint32_t>(kind);
  node.previous = previous;
  node.next = next;
  if (previous != 0) nodes_.at(previous).next = number;
  if (next != 0) nodes_.at(next).previous = number;
  return number;
}

void Pool::drop_node(std::uint32_t number) noexcept {
  const Node &node = nodes_.at(number);
  if (node.previous != 0) nodes_.at(node.previous).next = node.next;
  if (node.next != 0) nodes_.at(node.next).previous = node.previous;
  drop_entry(number);
}

// Cuts a block from one end of a hole, leaving `left` units. The caller writes the block's word and birth.
std::uint32_t Pool::split_hole(const Placement &placement, std::uint64_t units, std::uint64_t left) noexcept {
  const std::uint32_t hole = placement.hole;
  Node &rest = nodes_.at(hole);
  const std::uint64_t start = rest.unit();
  std::uint32_t block = 0;
  if (placement.low) {
    rest.unit(start + units);
    block = new_node(start, rest.previous, hole, Node::Kind::kBlock);
  } else {
    block = new_node(start + left, hole, rest.next, Node::Kind::kBlock);
  }
  if (hole == index_.cached_hole()) {
    defer_flush(left + units);
  } else {
    change_bin(hole, left + units, left);
    index_.shrink(hole, left);
  }
  return block;
}

std::uint32_t Pool::take_whole_hole(std::uint32_t hole, std::uint64_t units) noexcept {
  leave_bin(hole, units);
  --holes_;
  Node &node = nodes_.at(hole);
  node.kind(Node::Kind::kBlock);
  if (is_index_sample(node.unit())) {
    index_.close(hole);
  } else {
    index_.remove(hole);
  }
  return hole;
}

// Turns a block and its adjacent holes into one hole.
void Pool::coalesce(const AddressMap::Place &place, std::uint64_t units) noexcept {
  Node &node = nodes_.at(place.node);
  const std::uint32_t below = node.previous;
  const std::uint32_t above = node.next;
  const std::uint64_t start = node.unit();
  blocks_.erase(place);
  if (nodes_.at(below).is_hole()) {
    join_below(place.node, units);
  } else if (nodes_.at(above).is_hole()) {
    Node &hole = nodes_.at(above);
    const std::uint64_t was = size_of(nodes_, above);
    hole.unit(start);
    hole.previous = below;
    nodes_.at(below).next = above;
    drop_entry(place.node);
    grow_hole(above, was, was + units);
  } else {
    flush_cached_hole();
    node.kind(Node::Kind::kHole);
    node.word(0);
    ++holes_;
    enter_bin(place.node, units);
    enter_index(place.node, units);
  }
}

void Pool::join_below(std::uint32_t block, std::uint64_t units) noexcept {
  const std::uint32_t below = nodes_.at(block).previous;
  std::uint32_t next = nodes_.at(block).next;
  const std::uint64_t was = nodes_.at(block).unit() - nodes_.at(below).unit();
  std::uint64_t now = was + units;
  const bool joins_above = nodes_.at(next).is_hole();
  if (joins_above) flush_cached_hole();  // before either hole changes
  drop_entry(block);
  if (joins_above) {
    const std::uint32_t above = next;
    next = nodes_.at(above).next;
    const std::uint64_t swallowed = nodes_.at(next).unit() - nodes_.at(above).unit();
    now += swallowed;
    leave_bin(above, swallowed);
    unindexed_ -= nodes_.at(above).leaf() == 0 ? 1 : 0;
    drop_entry(above);
    --holes_;
  }
  nodes_.at(below).next = next;
  nodes_.at(next).previous = below;
  grow_hole(below, was, now);
}

void Pool::grow_hole(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept {
  if (hole == index_.cached_hole()) return defer_flush(was);
  flush_cached_hole();
  change_bin(hole, was, now);
  if (nodes_.at(hole).leaf() != 0) index_.resize(hole, now);
}

// --- the cached hole ---

void Pool::defer_flush(std::uint64_t was) noexcept {
  if (unflushed_units_ == 0) unflushed_units_ = was;
}

// Writes the cached hole's size to index and bins. Must be called before a search or query by size, and before a change
// that may make another hole the cached one.
void Pool::flush_cached_hole() noexcept {
  if (unflushed_units_ == 0) return;
  const std::uint32_t hole = index_.cached_hole();
  const std::uint64_t units = size_of(nodes_, hole);
  change_bin(hole, unflushed_units_, units);
  index_.resize(hole, units);
  unflushed_units_ = 0;
}

// REQUIRES: the node is no longer linked to its neighbours.
void Pool::drop_entry(std::uint32_t node) noexcept {
  if (nodes_.at(node).leaf() != 0) index_.remove(node);
  nodes_.give(node);
}

// --- holes that are not in the index because the host had no memory ---

// Design: design/placement.md#frees-without-host-memory
void Pool::enter_index(std::uint32_t hole, std::uint64_t units) noexcept {
  if (nodes_.at(hole).leaf() != 0) {  // the node is an index sample
    index_.resize(hole, units);
  } else if (index_.prepare()) {
    index_.add(hole, units);
  } else {
    ++unindexed_;
  }
}

bool Pool::index_again() noexcept {
  flush_cached_hole();
  for (const Region &region : regions_) {
    for (std::uint32_t at = region.begin; at != region.end; at = nodes_.at(at).next) {
      if (!nodes_.at(at).is_hole() || nodes_.at(at).leaf() != 0) continue;
      if (!index_.prepare()) return false;
      index_.add(at, size_of(nodes_, at));
      --unindexed_;
    }
  }
  return true;
}

// --- bins ---

void Pool::enter_bin(std::uint32_t hole, std::uint64_t units) noexcept {
  if (units < SizeBins::kSmallestUnits) return;
  const std::uint32_t number = bins_.insert(hole, units);
  nodes_.at(hole).word(static_cast<std::uint16_t>(number));
}

void Pool::leave_bin(std::uint32_t hole, std::uint64_t units) noexcept {
  if (units < SizeBins::kSmallestUnits) return;
  Node &node = nodes_.at(hole);
  if (node.word() == 0) return;  // the bins had no room for it
  bins_.remove(node.word());
  node.word(0);
}

void Pool::change_bin(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept {
  if (was < SizeBins::kSmallestUnits && now < SizeBins::kSmallestUnits) return;
  if (const std::uint16_t number = nodes_.at(hole).word(); number != 0 && now >= SizeBins::kSmallestUnits) {
    bins_.change(number, now);
    return;
  }
  leave_bin(hole, was);
  enter_bin(hole, now);
}

}  // namespace ration::pool
