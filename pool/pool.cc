#include "pool/pool.h"

#include <algorithm>
#include <new>

namespace ration::pool {
namespace {

Address first_usable(const Slab &slab) {
  return (slab.address / kGranuleBytes + 1) * kGranuleBytes;
}
Address usable_end(const Slab &slab) {
  return (slab.address + slab.bytes) / kGranuleBytes * kGranuleBytes;
}

std::uint64_t usable_granules(const Slab &slab) {
  return (usable_end(slab) - first_usable(slab)) >> kGranuleShift;
}

// Two kinds of tenants, one from each end. What is large is placed by size, at the low end of the tightest hole: large
// requests repeat their sizes, and a snug hole is there again next time. What is small is placed by address, at the top
// of the highest hole that takes it: fleeting blocks stay together instead of nibbling at the large holes. Measured
// against best fit and first fit alone, this needs least room on training, on serving and on random sizes alike.
bool is_large(std::uint64_t granules) {
  return granules >= SizeBins::kSmallestGranules;
}

}  // namespace

AllocateOutcome Pool::allocate(std::uint64_t bytes) noexcept {
  using Kind = AllocateOutcome::Kind;
  const auto refusal = [this](Kind kind) { return AllocateOutcome{kind, {}, pool::bytes_of(tree_.largest_hole())}; };
  if (bytes > kMaximumBytes) return refusal(Kind::kNoRoom);
  const std::uint64_t granules = granules_of(bytes);
  Position hole;
  if (!choose_hole(granules, hole)) return refusal(Kind::kNoRoom);
  if (!tree_.prepare_insert()) return refusal(Kind::kNoHostMemory);
  const std::uint64_t rounded = pool::bytes_of(granules);
  const Address address = carve(hole, granules, static_cast<std::uint32_t>(rounded - bytes));
  used_granules_ += granules;
  ++blocks_;
  return {Kind::kAllocated, {address, rounded, bytes, slab_at(address)->id}, 0};
}

bool Pool::choose_hole(std::uint64_t granules, Position &hole) const noexcept {
  if (!is_large(granules)) return tree_.find_highest_hole(granules, hole);
  if (const std::optional<Address> binned = bins_.find(granules)) return tree_.find(*binned, hole);
  return tree_.find_lowest_hole(granules, hole);  // the bins look at a few holes only; the tree knows them all
}

Address Pool::carve(Position &hole, std::uint64_t granules, std::uint32_t slack) noexcept {
  const Address start = hole.address();
  const std::uint64_t rest = hole.granules() - granules;
  leave_bin(hole);
  if (rest == 0) {
    tree_.set(hole, granules, false);
    hole.mark(slack);
    --holes_;
    return start;
  }
  if (!is_large(granules)) {
    const Address address = start + pool::bytes_of(rest);
    tree_.set(hole, rest, true);
    enter_bin(hole);
    tree_.insert_after(hole, address, granules, false, slack);
    return address;
  }
  tree_.insert_after(hole, start + pool::bytes_of(granules), rest, true);
  tree_.set(hole, granules, false);
  hole.mark(slack);
  if (is_large(rest)) {
    tree_.next(hole);
    enter_bin(hole);
  }
  return start;
}

bool Pool::find_start(Address address, Position &block) const noexcept {
  return tree_.find(address, block) && block.address() == address && !block.is_hole() && !block.is_guard();
}

FreeOutcome Pool::free(Address address) noexcept {
  Position block;
  if (!find_start(address, block) || is_retired(block)) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t granules = block.granules();
  open_up(block);
  used_granules_ -= granules;
  --blocks_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(granules)};
}

FreeOutcome Pool::retire(Address address) noexcept {
  Position block;
  if (!find_start(address, block) || is_retired(block)) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t granules = block.granules();
  block.mark(block.mark() | kRetired);
  used_granules_ -= granules;
  retired_granules_ += granules;
  --blocks_;
  ++retired_blocks_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(granules)};
}

FreeOutcome Pool::reclaim(Address address) noexcept {
  Position block;
  if (!find_start(address, block) || !is_retired(block)) return {FreeOutcome::Kind::kNotABlock, 0};
  const std::uint64_t granules = block.granules();
  open_up(block);
  retired_granules_ -= granules;
  --retired_blocks_;
  return {FreeOutcome::Kind::kFreed, pool::bytes_of(granules)};
}

// Makes a hole of a block and of the holes beside it.
void Pool::open_up(Position &block) noexcept {
  const Address address = block.address();
  std::uint64_t merged = block.granules();
  if (Position after = block; tree_.next(after) && after.is_hole()) {
    merged += after.granules();
    leave_bin(after);
    tree_.erase(after);
    --holes_;
  }
  const bool sparse = tree_.is_sparse(block);
  if (Position before = block; tree_.previous(before) && before.is_hole()) {
    merged += before.granules();
    leave_bin(before);
    tree_.set(before, merged, true);
    enter_bin(before);
    tree_.erase(block);
  } else {
    tree_.set(block, merged, true);
    enter_bin(block);
    ++holes_;
  }
  if (sparse) tree_.tidy(address);
}

void Pool::enter_bin(Position &hole) noexcept {
  const bool large = is_large(hole.granules());
  hole.mark(large ? bins_.insert(hole.address(), hole.granules()) : 0);
  if (large && hole.mark() == 0) ++unbinned_;
}

void Pool::leave_bin(Position &hole) noexcept {
  if (!is_large(hole.granules())) return;
  if (hole.mark() != 0) {
    bins_.remove(hole.mark());
    hole.mark(0);
  } else {
    --unbinned_;
  }
}

const Slab *Pool::slab_at(Address address) const noexcept {
  auto after = std::upper_bound(slabs_.begin(), slabs_.end(), address,
                                [](Address value, const Slab &slab) { return value < slab.address; });
  if (after == slabs_.begin()) return nullptr;
  --after;
  return address - after->address < after->bytes ? &*after : nullptr;
}

AddSlabOutcome Pool::add_slab(const Slab &slab) noexcept {
  if (slab.bytes > kMaximumBytes || slab.address > ~Address{0} - slab.bytes) return AddSlabOutcome::kTooLarge;
  if (usable_end(slab) <= first_usable(slab)) return AddSlabOutcome::kTooSmall;
  const auto place = std::upper_bound(slabs_.begin(), slabs_.end(), slab.address,
                                      [](Address value, const Slab &other) { return value < other.address; });
  if (place != slabs_.end() && slab.address + slab.bytes > place->address) return AddSlabOutcome::kOverlaps;
  if (place != slabs_.begin() && slab_at(slab.address) != nullptr) return AddSlabOutcome::kOverlaps;
  if (!tree_.prepare_insert(2)) return AddSlabOutcome::kNoHostMemory;
  try {
    slabs_.insert(place, slab);
  } catch (const std::bad_alloc &) {
    return AddSlabOutcome::kNoHostMemory;
  }
  tree_.insert(slab.address, 0, false);
  tree_.insert(first_usable(slab), usable_granules(slab), true);
  Position hole;
  tree_.find(first_usable(slab), hole);
  enter_bin(hole);
  ++holes_;
  usable_granules_ += usable_granules(slab);
  return AddSlabOutcome::kAdded;
}

bool Pool::wholly_free(const Slab &slab) const noexcept {
  Position hole;
  tree_.find(first_usable(slab), hole);
  return hole.is_hole() && hole.granules() == usable_granules(slab);
}

std::optional<Slab> Pool::wholly_free_slab() const noexcept {
  const auto found = std::find_if(slabs_.begin(), slabs_.end(), [this](const Slab &slab) { return wholly_free(slab); });
  return found == slabs_.end() ? std::nullopt : std::optional<Slab>(*found);
}

bool Pool::remove_slab(std::uint64_t id) noexcept {
  const auto slab = std::find_if(slabs_.begin(), slabs_.end(), [id](const Slab &each) { return each.id == id; });
  if (slab == slabs_.end() || !wholly_free(*slab)) return false;
  Position hole;
  tree_.find(first_usable(*slab), hole);
  leave_bin(hole);
  Position guard = hole;
  tree_.previous(guard);
  tree_.erase(hole);
  tree_.erase(guard);
  tree_.tidy(slab->address);
  --holes_;
  usable_granules_ -= usable_granules(*slab);
  slabs_.erase(slab);
  return true;
}

bool Pool::reserve(std::size_t blocks) noexcept {
  return tree_.reserve(blocks + blocks / 2);  // a hole for every second block is the steady state (Knuth's 50 % rule)
}

}  // namespace ration::pool
