// The placement policy: which hole a block gets, and from which end.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
//
// Large blocks are placed from the low end of the pool, small and short-lived ones from the high end:
// - A single large block gets the tightest hole: large sizes repeat, and a tight hole will fit the next one again.
// - A large block that follows one of its own size (the tensors of a request or a layer) gets the lowest hole, so that
//   the run stays together.
// - A block of a long run goes after its predecessor. If it does not fit there, it gets one of the lowest holes: the
//   one that such blocks fill with the smallest remainder, because each piece of the run strands a remainder. The
//   largest hole is avoided.
// - A small block gets the high end of the highest hole that fits, so that such blocks do not fragment the large holes.
// - A large block of a short-lived size also goes to the high end, because it would fragment the blocks that stay.
// Measured against best fit, first fit, last fit and segregated fit on ten kinds of programs with many seeds
// (tests/shapes).
// Design: design/placement.md#placing-by-size
#include "pool/pool.h"

namespace ration::pool {
namespace {

constexpr std::uint64_t kLargeUnits = SizeBins::kSmallestUnits;
// In a long run, blocks of 2 MiB or more count as large: so many of them would fragment the high end.
constexpr std::uint64_t kRunUnits = (std::uint64_t{2} << 20) / kUnitBytes;
constexpr std::uint32_t kHighest = 4;
constexpr std::uint32_t kTiled = 16;

}  // namespace

// Returns the same as choose_hole() when the cached hole gives that answer without a search.
Pool::Placement Pool::cached_placement(std::uint64_t units) const noexcept {
  const std::uint32_t hole = index_.cached_hole();
  if (hole == 0 || units < index_.cached_units() || units >= kRunUnits) return {0, false};
  return {size_of(nodes_, hole) > units ? hole : 0, false};
}

// Tests the rare case first. Sizes may be random, and a branch on them costs more than it saves.
Pool::Placement Pool::choose_hole(std::uint64_t units) noexcept {
  using Side = HoleIndex::Side;
  if (growing_) [[unlikely]]
    return choose_lowest(units);
  if (runs_.is_repeated(units) && units >= kRunUnits) return choose_in_run(units);
  if (units < kLargeUnits) return {index_.find(units, Side::kHigh), false};
  return choose_large(units);
}

Pool::Placement Pool::choose_lowest(std::uint64_t units) noexcept {
  return {index_.find(units, HoleIndex::Side::kLow), true};
}

// Places a single large block.
Pool::Placement Pool::choose_large(std::uint64_t units) noexcept {
  if (lifetimes_.is_short_lived(units)) return {index_.find(units, HoleIndex::Side::kHigh, kHighest), false};
  return choose_tight(units);
}

Pool::Placement Pool::choose_in_run(std::uint64_t units) noexcept {
  using Side = HoleIndex::Side;
  const bool is_large = units >= kLargeUnits;
  if (is_large && lifetimes_.is_short_lived(units)) return {index_.find(units, Side::kHigh, kHighest), false};
  const std::uint32_t before = place_of(runs_.last_address(), false).node;
  if (before == 0) {
    runs_.start();
  } else if (runs_.extend(); runs_.is_long()) {
    return {continue_run(before, units), true};
  }
  if (!is_large) return {index_.find(units, Side::kHigh), false};
  return before == 0 ? choose_tight(units) : Placement{index_.find(units, Side::kLow), true};
}

Pool::Placement Pool::choose_tight(std::uint64_t units) noexcept {
  if (const std::uint32_t binned = bins_.find(units); binned != 0) return {binned, true};
  // The bins examine only a few holes; the index has all of them.
  return {index_.find(units, HoleIndex::Side::kLow), true};
}

std::uint32_t Pool::continue_run(std::uint32_t before, std::uint64_t units) noexcept {
  const std::uint32_t next = nodes_.at(before).next;
  if (nodes_.at(next).is_hole() && size_of(nodes_, next) >= units) return next;
  return index_.find_tiled(units, kTiled);
}

void Pool::record_lifetime(std::uint32_t block, std::uint64_t units) noexcept {
  if (units >= kLargeUnits) lifetimes_.freed(units, nodes_.at(block).birth, used_units_);
}

}  // namespace ration::pool
