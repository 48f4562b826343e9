// Which hole a block gets, and from which of its ends: all that the pool decides by judgement is in this file.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
//
// Three kinds of tenants, from the two ends of the pool. Large blocks are placed from the low end: one that comes alone
// in the snuggest hole, for large requests repeat their sizes and a snug hole is there again next time; one of a run of
// its size (the tensors of one request, of one layer) low among the lowest holes, so that the run stays together.
// Where runs are long, one goes on behind its last block, and then into that of the lowest holes which it fills with
// the least left over: each of its pieces strands such a rest. It leaves the largest hole to those who need it.
// What is small goes to the top of the highest hole that takes it: fleeting blocks stay together instead of nibbling at
// the large holes. And so does what is large but fleeting, for it would come between those that stay. Measured against
// best fit, first fit, last fit and segregated fit alone, on ten shapes of programs and many seeds of each
// (tests/shapes).
#include "pool/pool.h"

namespace ration::pool {
namespace {

constexpr std::uint64_t kLargeGranules = SizeBins::kSmallestGranules;
// In a long run blocks of 2 MiB are large: so many would leave the small ones' end in pieces.
constexpr std::uint64_t kRunGranules = (std::uint64_t{2} << 20) / kGranuleBytes;
constexpr std::uint32_t kHighest = 4;
constexpr std::uint32_t kLowest = 2;
constexpr std::uint32_t kTiled = 16;

}  // namespace

// What choose_hole() would answer, where that is known without looking for it.
Pool::Placement Pool::choose_again(std::uint64_t granules) const noexcept {
  const std::uint32_t top = index_.top();
  if (top == 0 || granules < index_.top_granules() || granules >= kRunGranules) return {0, false};
  return {size_of(nodes_, top) > granules ? top : 0, false};
}

// What programs seldom do is asked first: sizes may be random, and a branch on them costs more than what it saves.
Pool::Placement Pool::choose_hole(std::uint64_t granules) noexcept {
  using Side = HoleIndex::Side;
  if (runs_.is_repeated(granules) && granules >= kRunGranules) return choose_in_run(granules);
  if (granules < kLargeGranules) return {index_.find(granules, Side::kHigh), false};
  if (lives_.fleeting(granules)) return {index_.find(granules, Side::kHigh, kHighest), false};
  return choose_snug(granules);
}

Pool::Placement Pool::choose_in_run(std::uint64_t granules) noexcept {
  using Side = HoleIndex::Side;
  const bool is_large = granules >= kLargeGranules;
  if (is_large && lives_.fleeting(granules)) return {index_.find(granules, Side::kHigh, kHighest), false};
  const std::uint32_t before = place_of(runs_.last_address(), false).node;
  if (before == 0) {
    runs_.begin();
  } else if (runs_.go_on(); runs_.is_long()) {
    return {go_on(before, granules), true};
  }
  if (!is_large) return {index_.find(granules, Side::kHigh), false};
  return before == 0 ? choose_snug(granules) : Placement{index_.find(granules, Side::kLow, kLowest), true};
}

Pool::Placement Pool::choose_snug(std::uint64_t granules) noexcept {
  if (const std::uint32_t binned = bins_.find(granules); binned != 0) return {binned, true};
  // The bins look at a few holes only; the index knows them all.
  return {index_.find(granules, HoleIndex::Side::kLow, kLowest), true};
}

std::uint32_t Pool::go_on(std::uint32_t before, std::uint64_t granules) noexcept {
  const std::uint32_t behind = nodes_.at(before).next;
  if (nodes_.at(behind).is_hole() && size_of(nodes_, behind) >= granules) return behind;
  return index_.find_tiled(granules, kTiled);
}

void Pool::learn(std::uint32_t block, std::uint64_t granules) noexcept {
  if (granules >= kLargeGranules) lives_.freed(granules, nodes_.at(block).birth, used_granules_);
}

}  // namespace ration::pool
