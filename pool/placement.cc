// The placement policy: which hole a block gets, and from which end.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
//
// Large blocks are placed from the low end of the pool, small and short-lived ones from the high end:
// - A single large block gets the tightest hole: large sizes repeat, and a tight hole will fit the next one again.
// - A large block of a run of one size (the tensors of a request or a layer) gets one of the lowest holes, so that the
//   run stays together.
// - A block of a long run follows its predecessor. Otherwise it gets that of the lowest holes which such blocks fill
//   with the smallest remainder, because each piece of the run strands one. The largest hole is avoided.
// - A small block gets the high end of the highest hole that fits, so that such blocks do not fragment the large holes.
// - A large block of a short-lived size does too, because it would fragment the blocks that stay.
// Measured against best fit, first fit, last fit and segregated fit on ten shapes of programs with many seeds
// (tests/shapes).
#include "pool/pool.h"

namespace ration::pool {
namespace {

constexpr std::uint64_t kLargeGranules = SizeBins::kSmallestGranules;
// In a long run, blocks from 2 MiB on count as large: so many would fragment the high end.
constexpr std::uint64_t kRunGranules = (std::uint64_t{2} << 20) / kGranuleBytes;
constexpr std::uint32_t kHighest = 4;
constexpr std::uint32_t kLowest = 2;
constexpr std::uint32_t kTiled = 16;
constexpr std::uint64_t kScarceRunGranules = (std::uint64_t{128} << 10) / kGranuleBytes;
constexpr std::uint32_t kAmongScarce = 64;

}  // namespace

// The answer of choose_hole() where the cached hole gives it without a search.
Pool::Placement Pool::cached_placement(std::uint64_t granules) const noexcept {
  const std::uint32_t hole = index_.cached_hole();
  if (hole == 0 || granules < index_.cached_granules() || granules >= kRunGranules) return {0, false};
  return {size_of(nodes_, hole) > granules ? hole : 0, false};
}

// The rare case first: sizes may be random, and a branch on them costs more than it saves.
Pool::Placement Pool::choose_hole(std::uint64_t granules) noexcept {
  using Side = HoleIndex::Side;
  if (is_special_) [[unlikely]]
    return choose_specially(granules);
  if (runs_.is_repeated(granules) && granules >= kRunGranules) return choose_in_run(granules);
  if (granules < kLargeGranules) return {index_.find(granules, Side::kHigh), false};
  return choose_large(granules);
}

// While memory is scarce, or the slab grows.
Pool::Placement Pool::choose_specially(std::uint64_t granules) noexcept {
  using Side = HoleIndex::Side;
  if (!scarce_) return {index_.find(granules, Side::kLow, kLowest), true};
  const bool repeated = runs_.is_repeated(granules);
  if (repeated && granules >= kRunGranules) return choose_in_run(granules);
  if (repeated && granules >= kScarceRunGranules) {
    runs_.extend();
    if (const std::uint32_t hole = continue_small_run(granules); hole != 0) return {hole, true};
  }
  if (granules < kLargeGranules) return {index_.find(granules, Side::kHigh, kAmongScarce), false};
  return choose_large(granules);
}

// A single large block.
Pool::Placement Pool::choose_large(std::uint64_t granules) noexcept {
  if (lifetimes_.is_short_lived(granules)) return {index_.find(granules, HoleIndex::Side::kHigh, kHighest), false};
  return choose_tight(granules);
}

bool Pool::wants_page(std::uint64_t bytes) const noexcept {
  const std::uint64_t granules = pool::granules_of(bytes);
  return granules < kRunGranules && granules >= kScarceRunGranules && runs_.is_repeated(granules) &&
         continue_small_run(granules) == 0;
}

// The hole behind the last block, or at the start of the fresh page; or 0.
std::uint32_t Pool::continue_small_run(std::uint64_t granules) const noexcept {
  if (const std::uint32_t before = place_of(runs_.last_address(), false).node; before != 0) {
    const std::uint32_t next = nodes_.at(before).next;
    if (nodes_.at(next).is_hole() && size_of(nodes_, next) >= granules) return next;
  }
  const Region *region = fresh_page_ == 0 ? nullptr : region_at(fresh_page_);
  if (region == nullptr) return 0;
  const std::uint32_t node = node_around(*region, fresh_page_ >> kGranuleShift);
  const bool fits = nodes_.at(node).is_hole() && size_of(nodes_, node) >= granules;
  return fits ? node : 0;
}

Pool::Placement Pool::choose_in_run(std::uint64_t granules) noexcept {
  using Side = HoleIndex::Side;
  const bool is_large = granules >= kLargeGranules;
  if (is_large && lifetimes_.is_short_lived(granules)) return {index_.find(granules, Side::kHigh, kHighest), false};
  const std::uint32_t before = place_of(runs_.last_address(), false).node;
  if (before == 0) {
    runs_.start();
  } else if (runs_.extend(); runs_.is_long()) {
    return {continue_run(before, granules), true};
  }
  if (!is_large) return {index_.find(granules, Side::kHigh), false};
  return before == 0 ? choose_tight(granules) : Placement{index_.find(granules, Side::kLow, kLowest), true};
}

Pool::Placement Pool::choose_tight(std::uint64_t granules) noexcept {
  if (const std::uint32_t binned = bins_.find(granules); binned != 0) return {binned, true};
  // The bins examine only a few holes; the index has them all.
  return {index_.find(granules, HoleIndex::Side::kLow, kLowest), true};
}

std::uint32_t Pool::continue_run(std::uint32_t before, std::uint64_t granules) noexcept {
  const std::uint32_t next = nodes_.at(before).next;
  if (nodes_.at(next).is_hole() && size_of(nodes_, next) >= granules) return next;
  return index_.find_tiled(granules, kTiled);
}

void Pool::record_lifetime(std::uint32_t block, std::uint64_t granules) noexcept {
  if (granules >= kLargeGranules) lifetimes_.freed(granules, nodes_.at(block).birth, used_granules_);
}

}  // namespace ration::pool
