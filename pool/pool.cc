#include "pool/pool.h"

#include <algorithm>
#include <new>

namespace ration::pool {
namespace {

// One block in sixteen is in the index: interior addresses are found from there.
bool is_landmark(std::uint64_t granule) {
  return mixed(granule) >> 60 == 0;
}

}  // namespace

AllocateOutcome Pool::allocate(std::uint64_t bytes) noexcept {
  using Kind = AllocateOutcome::Kind;
  const auto refusal = [this](Kind kind) { return AllocateOutcome{kind, {}, pool::bytes_of(index_.largest())}; };
  if (bytes > kMaximumBytes) return refusal(Kind::kNoRoom);
  if (unindexed_ != 0 && !index_again()) return refusal(Kind::kNoHostMemory);
  const std::uint64_t granules = pool::granules_of(bytes);
  const Placement placement = choose_hole(granules);
  if (placement.hole == 0) return refusal(Kind::kNoRoom);
  if (!nodes_.prepare(1) || !index_.prepare() || !blocks_.prepare()) return refusal(Kind::kNoHostMemory);
  const std::uint64_t rounded = pool::bytes_of(granules);
  const Address address = nodes_.at(carve(placement, granules, static_cast<std::uint32_t>(rounded - bytes))).address();
  used_granules_ += granules;
  ++live_count_;
  lives_.allocated(granules);
  last_request_ = granules;
  return {Kind::kAllocated, {address, rounded, bytes, region_at(address)->slab.id}, 0};
}

std::uint32_t Pool::new_node(std::uint64_t granule, std::uint32_t previous, std::uint32_t next,
                             Node::Kind kind) noexcept {
  const std::uint32_t number = nodes_.take();
  Node &node = nodes_.at(number);
  node.granule(granule);
  node.word = 0;
  node.place = 0;
  node.kind(kind);
  node.previous = previous;
  node.next = next;
  if (previous != 0) nodes_.at(previous).next = number;
  if (next != 0) nodes_.at(next).previous = number;
  return number;
}

void Pool::drop_node(std::uint32_t number) noexcept {
  const Node &node = nodes_.at(number);
  if (node.leaf() != 0) index_.remove(number);
  if (node.previous != 0) nodes_.at(node.previous).next = node.next;
  if (node.next != 0) nodes_.at(node.next).previous = node.previous;
  nodes_.give(number);
}

std::uint32_t Pool::carve(const Placement &placement, std::uint64_t granules, std::uint32_t slack) noexcept {
  const std::uint32_t hole = placement.hole;
  const std::uint64_t was = size_of(nodes_, hole);
  const std::uint32_t block = was == granules ? carve_whole(hole)
                              : placement.low ? carve_low(hole, granules)
                                              : carve_high(hole, granules);
  Node &node = nodes_.at(block);
  node.word = static_cast<std::uint16_t>(slack);
  node.birth = lives_.now();
  if (block != hole) {
    change_bin(hole, was, was - granules);
    index_.resize(hole, was - granules);
  }
  blocks_.insert(node.granule(), block);
  if (is_landmark(node.granule()) && node.leaf() == 0) index_.add(block, 0);
  return block;
}

std::uint32_t Pool::carve_whole(std::uint32_t hole) noexcept {
  leave_bin(hole, size_of(nodes_, hole));
  --holes_;
  Node &node = nodes_.at(hole);
  node.kind(Node::Kind::kBlock);
  if (is_landmark(node.granule())) {
    index_.resize(hole, 0);
  } else {
    index_.remove(hole);
  }
  return hole;
}

std::uint32_t Pool::carve_low(std::uint32_t hole, std::uint64_t granules) noexcept {
  Node &node = nodes_.at(hole);
  const std::uint64_t start = node.granule();
  node.granule(start + granules);
  return new_node(start, node.previous, hole, Node::Kind::kBlock);
}

std::uint32_t Pool::carve_high(std::uint32_t hole, std::uint64_t granules) noexcept {
  const std::uint32_t next = nodes_.at(hole).next;
  return new_node(nodes_.at(next).granule() - granules, hole, next, Node::Kind::kBlock);
}

std::uint32_t Pool::block_at(Address address, bool retired) const noexcept {
  const std::uint32_t block = address % kGranuleBytes == 0 ? blocks_.find(address >> kGranuleShift) : 0;
  return block != 0 && nodes_.at(block).is_retired() == retired ? block : 0;
}

FreeOutcome Pool::free(Address address) noexcept {
  const std::uint32_t block = block_at(address, false);
  if (block == 0) return {FreeOutcome::Kind::kNotABlock, 0};
  end_life(block);
  const std::uint64_t granules = open_up(block);
  used_granules_ -= granules;
  --live_count_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(granules)};
}

FreeOutcome Pool::retire(Address address, std::uint64_t most) noexcept {
  const std::uint32_t block = block_at(address, false);
  if (block == 0) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t granules = size_of(nodes_, block);
  if (pool::bytes_of(granules) > most) return {FreeOutcome::Kind::kTooLarge, 0};
  end_life(block);
  nodes_.at(block).retire();
  used_granules_ -= granules;
  retired_granules_ += granules;
  --live_count_;
  ++retired_count_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(granules)};
}

FreeOutcome Pool::reclaim(Address address) noexcept {
  const std::uint32_t block = block_at(address, true);
  if (block == 0) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t granules = open_up(block);
  retired_granules_ -= granules;
  --retired_count_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(granules)};
}

void Pool::end_life(std::uint32_t block) noexcept {
  learn(block);
  if (nodes_.at(block).is_named()) names_.erase(block);
}

// Makes a hole of a block and of the holes beside it; how large the block was.
std::uint64_t Pool::open_up(std::uint32_t block) noexcept {
  Node &node = nodes_.at(block);
  const std::uint32_t below = node.previous;
  const std::uint32_t above = node.next;
  const std::uint64_t start = node.granule();
  const std::uint64_t granules = nodes_.at(above).granule() - start;
  const bool joins_below = nodes_.at(below).is_hole();
  const bool joins_above = nodes_.at(above).is_hole();
  blocks_.erase(start, block);
  if (!joins_below && !joins_above) {
    node.kind(Node::Kind::kHole);
    node.word = 0;
    ++holes_;
    enter_bin(block, granules);
    enter_index(block, granules);
    return granules;
  }
  const std::uint32_t hole = joins_below ? below : above;
  const std::uint64_t was = size_of(nodes_, hole);
  std::uint64_t now = was + granules;
  drop_node(block);
  if (joins_below && joins_above) {
    const std::uint64_t swallowed = size_of(nodes_, above);
    now += swallowed;
    leave_bin(above, swallowed);
    if (nodes_.at(above).leaf() == 0) --unindexed_;
    drop_node(above);
    --holes_;
  }
  if (!joins_below) nodes_.at(above).granule(start);
  change_bin(hole, was, now);
  if (nodes_.at(hole).leaf() != 0) index_.resize(hole, now);
  return granules;
}

// --- holes that the host had no memory to index ---

void Pool::enter_index(std::uint32_t hole, std::uint64_t granules) noexcept {
  if (nodes_.at(hole).leaf() != 0) {  // a landmark
    index_.resize(hole, granules);
  } else if (index_.prepare()) {
    index_.add(hole, granules);
  } else {
    ++unindexed_;
  }
}

bool Pool::index_again() noexcept {
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

void Pool::enter_bin(std::uint32_t hole, std::uint64_t granules) noexcept {
  if (granules < SizeBins::kSmallestGranules) return;
  const std::uint32_t number = bins_.insert(hole, granules);
  nodes_.at(hole).word = static_cast<std::uint16_t>(number);
  unbinned_ += number == 0 ? 1 : 0;
}

void Pool::leave_bin(std::uint32_t hole, std::uint64_t granules) noexcept {
  if (granules < SizeBins::kSmallestGranules) return;
  Node &node = nodes_.at(hole);
  if (node.word != 0) {
    bins_.remove(node.word);
    node.word = 0;
  } else {
    --unbinned_;
  }
}

// Most holes keep their bin, and then nothing is relinked.
void Pool::change_bin(std::uint32_t hole, std::uint64_t was, std::uint64_t now) noexcept {
  if (nodes_.at(hole).word != 0 && now >= SizeBins::kSmallestGranules) {
    bins_.change(nodes_.at(hole).word, now);
    return;
  }
  leave_bin(hole, was);
  enter_bin(hole, now);
}

}  // namespace ration::pool
