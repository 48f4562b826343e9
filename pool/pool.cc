// Allocate, free, retire and reclaim.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
//
// [[gnu::flatten]] inlines everything that each of these functions calls: the calls took a third of the time of a hit.
#include "pool/pool.h"

namespace ration::pool {
namespace {

// With this many blocks most of the metadata is outside the near caches.
constexpr std::size_t kMany = 4096;

}  // namespace

[[gnu::flatten]] AllocateOutcome Pool::allocate(std::uint64_t bytes) noexcept {
  using Kind = AllocateOutcome::Kind;
  if (bytes > kMaximumBytes) return refusal(Kind::kNoRoom);
  if (unindexed_ != 0 && !index_again()) return refusal(Kind::kNoHostMemory);
  const std::uint64_t units = pool::units_of(bytes);
  Placement placement = cached_placement(units);
  if (placement.hole == 0) {
    flush_cached_hole();
    placement = choose_hole(units);
    if (placement.hole == 0) return refusal(Kind::kNoRoom);
  }
  if (!nodes_.prepare(1) || !blocks_.prepare()) return refusal(Kind::kNoHostMemory);
  const std::uint64_t begin = nodes_.at(placement.hole).unit();
  const std::uint64_t end = nodes_.at(nodes_.at(placement.hole).next).unit();
  const std::uint64_t start = placement.low ? begin : end - units;
  const bool is_sample = is_index_sample(start);
  if (is_sample && !index_.prepare()) return refusal(Kind::kNoHostMemory);
  const std::uint64_t rounded = pool::bytes_of(units);
  const std::uint64_t left = end - begin - units;
  const std::uint32_t block = left == 0 ? take_whole_hole(placement.hole, units) : split_hole(placement, units, left);
  Node &node = nodes_.at(block);
  node.word(static_cast<std::uint16_t>(rounded - bytes));
  node.birth = lifetimes_.now();
  blocks_.insert(start, block);
  if (is_sample && node.leaf() == 0) index_.add(block, 0);
  used_units_ += units;
  ++live_count_;
  lifetimes_.allocated(units);
  const Address address = start << kUnitShift;
  runs_.record(units, address);
  return {Kind::kAllocated, {address, rounded, bytes, region_around(address).slab.id}, 0};
}

AllocateOutcome Pool::refusal(AllocateOutcome::Kind kind) noexcept {
  flush_cached_hole();
  return {kind, {}, pool::bytes_of(index_.largest())};
}

AddressMap::Place Pool::place_of(Address address, bool retired) const noexcept {
  if (address % kUnitBytes != 0) return {};
  const AddressMap::Place place = blocks_.look_up(address >> kUnitShift);
  return place.node != 0 && nodes_.at(place.node).is_retired() == retired ? place : AddressMap::Place{};
}

[[gnu::flatten]] FreeOutcome Pool::free(Address address) noexcept {
  const AddressMap::Place place = place_of(address, false);
  if (place.node == 0) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t units = size_of(nodes_, place.node);
  if (blocks_.size() >= kMany) prefetch_around(place.node);
  end_life(place.node, units);
  coalesce(place, units);
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(units)};
}

[[gnu::flatten]] FreeOutcome Pool::retire(Address address, std::uint64_t most) noexcept {
  const std::uint32_t block = place_of(address, false).node;
  if (block == 0) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t units = size_of(nodes_, block);
  if (pool::bytes_of(units) > most) return {FreeOutcome::Kind::kTooLarge, 0};
  end_life(block, units);
  nodes_.at(block).retire();
  retired_units_ += units;
  ++retired_count_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(units)};
}

[[gnu::flatten]] FreeOutcome Pool::reclaim(Address address) noexcept {
  const AddressMap::Place place = place_of(address, true);
  if (place.node == 0 || nodes_.at(place.node).is_withheld()) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t units = size_of(nodes_, place.node);
  if (blocks_.size() >= kMany) prefetch_around(place.node);
  coalesce(place, units);
  retired_units_ -= units;
  --retired_count_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(units)};
}

void Pool::end_life(std::uint32_t block, std::uint64_t units) noexcept {
  record_lifetime(block, units);
  if (nodes_.at(block).is_named()) [[unlikely]]
    names_.erase(block);
  used_units_ -= units;
  --live_count_;
}

// Prefetches the neighbours' metadata together. With so many blocks it is in no near cache, and would cost one miss
// after another.
void Pool::prefetch_around(std::uint32_t block) const noexcept {
  const Node &node = nodes_.at(block);
  index_.prefetch(node.previous);
  index_.prefetch(node.next);
  __builtin_prefetch(&nodes_.at(nodes_.at(node.next).next));
}

}  // namespace ration::pool
