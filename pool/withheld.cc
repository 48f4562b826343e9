// Withheld ranges: parts of a slab that are in no hole and in no block.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include "pool/pool.h"

namespace ration::pool {

bool Pool::withhold(Address address, std::uint64_t bytes) noexcept {
  const std::uint64_t start = address >> kUnitShift;
  const std::uint64_t units = bytes >> kUnitShift;
  const std::uint32_t hole = node_around(address);
  if (hole == 0 || !nodes_.at(hole).is_hole() || nodes_.at(nodes_.at(hole).next).unit() < start + units) return false;
  if (address % kUnitBytes != 0 || bytes % kUnitBytes != 0 || units == 0) return false;
  if (unindexed_ != 0 && !index_again()) return false;
  flush_cached_hole();
  if (!nodes_.prepare(2) || !blocks_.prepare() || !index_.prepare()) return false;
  bins_.prepare(kMostBinned);
  const std::uint32_t block = occupy(hole, start, units);
  nodes_.at(block).withhold();
  nodes_.at(block).birth = 0;
  blocks_.insert(start, block);
  // Without an index entry, a search for an interior address only takes more steps.
  if (is_index_sample(start) && nodes_.at(block).leaf() == 0 && index_.prepare()) index_.add(block, 0);
  usable_units_ -= units;
  withheld_units_ += units;
  ++withheld_count_;
  return true;
}

// Cuts [start, start + units) out of a hole that contains it.
std::uint32_t Pool::occupy(std::uint32_t hole, std::uint64_t start, std::uint64_t units) noexcept {
  const std::uint64_t begin = nodes_.at(hole).unit();
  const std::uint64_t end = nodes_.at(nodes_.at(hole).next).unit();
  if (end - begin == units) return take_whole_hole(hole, units);
  if (start == begin) {
    const std::uint32_t block = split_hole({hole, true}, units, end - begin - units);
    flush_cached_hole();
    return block;
  }
  const std::uint32_t block = split_hole({hole, false}, end - start, start - begin);
  flush_cached_hole();
  if (const std::uint64_t left = end - start - units; left != 0) {
    const std::uint32_t rest = new_node(start + units, block, nodes_.at(block).next, Node::Kind::kHole);
    ++holes_;
    enter_bin(rest, left);
    enter_index(rest, left);
  }
  return block;
}

std::uint64_t Pool::restore(Address address) noexcept {
  const AddressMap::Place place = place_of(address, true);
  if (place.node == 0 || !nodes_.at(place.node).is_withheld()) return 0;
  const std::uint64_t units = size_of(nodes_, place.node);
  coalesce(place, units);
  usable_units_ += units;
  withheld_units_ -= units;
  --withheld_count_;
  return pool::bytes_of(units);
}

bool Pool::split_withheld(Address address, std::uint64_t bytes) noexcept {
  const std::uint32_t first = place_of(address, true).node;
  const std::uint64_t units = bytes >> kUnitShift;
  if (first == 0 || !nodes_.at(first).is_withheld() || units == 0 || size_of(nodes_, first) <= units) return false;
  if (!nodes_.prepare(1) || !blocks_.prepare() || !index_.prepare()) return false;
  const std::uint64_t start = nodes_.at(first).unit() + units;
  const std::uint32_t second = new_node(start, first, nodes_.at(first).next, Node::Kind::kBlock);
  nodes_.at(second).withhold();
  nodes_.at(second).birth = 0;
  blocks_.insert(start, second);
  if (is_index_sample(start)) index_.add(second, 0);
  ++withheld_count_;
  return true;
}

void Pool::join_withheld(Address address, Address next) noexcept {
  const AddressMap::Place second = place_of(next, true);
  const std::uint32_t first = place_of(address, true).node;
  if (first == 0 || second.node == 0 || nodes_.at(first).next != second.node) return;
  blocks_.erase(second);
  drop_node(second.node);
  --withheld_count_;
}

Pool::Hole Pool::hole_around(Address address) const noexcept {
  const std::uint32_t node = node_around(address);
  return node != 0 && nodes_.at(node).is_hole() ? hole_of(node) : Hole{};
}

}  // namespace ration::pool
