// Pool::check_invariants: every slab is tiled by guard, blocks and holes without gap, and all sums agree.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>
#include <string>

#include "pool/pool.h"

namespace ration::pool {

struct Pool::Tally {
  std::uint64_t used_granules = 0;
  std::uint64_t retired_granules = 0;
  std::uint64_t free_granules = 0;
  std::uint64_t largest = 0;
  std::uint64_t blocks = 0;
  std::uint64_t retired_blocks = 0;
  std::uint64_t holes = 0;
  std::uint64_t binned = 0;
  std::uint64_t unbinned = 0;
};

std::string Pool::check_invariants() const {
  if (std::string wrong = tree_.check(); !wrong.empty()) return "tree: " + wrong;
  if (std::string wrong = bins_.check(); !wrong.empty()) return "bins: " + wrong;
  Tally tally;
  Position at;
  bool more = tree_.first(at);
  for (const Slab &slab : slabs_) {
    if (!more) return "slab " + std::to_string(slab.id) + " is not in the tree";
    if (std::string wrong = check_slab(slab, at, tally); !wrong.empty()) {
      return "slab " + std::to_string(slab.id) + ": " + wrong;
    }
    more = tree_.next(at);
  }
  if (more) return "an entry at " + std::to_string(at.address()) + " lies beyond every slab";
  if (tally.used_granules != used_granules_) return "used bytes are miscounted";
  if (tally.retired_granules != retired_granules_) return "retired bytes are miscounted";
  if (tally.used_granules + tally.retired_granules + tally.free_granules != usable_granules_) {
    return "free bytes are miscounted";
  }
  if (tally.blocks != blocks_) return "blocks are miscounted";
  if (tally.retired_blocks != retired_blocks_) return "retired blocks are miscounted";
  if (tally.holes != holes_) return "holes are miscounted";
  if (tally.largest != tree_.largest_hole()) return "the largest hole is wrong";
  if (tally.binned != bins_.size()) return "a bin lists a hole that is none";
  if (tally.unbinned != unbinned_) return "a large hole is in no bin";
  return "";
}

// Leaves `at` at the slab's last entry.
std::string Pool::check_slab(const Slab &slab, Position &at, Tally &tally) const {
  if (at.address() != slab.address || at.is_hole() || !at.is_guard()) return "does not begin with a guard";
  Address expected = (slab.address / kGranuleBytes + 1) * kGranuleBytes;
  const Address end = (slab.address + slab.bytes) / kGranuleBytes * kGranuleBytes;
  for (bool after_hole = false; expected < end; expected += pool::bytes_of(at.granules())) {
    const auto wrong = [&](const char *what) {
      return "at offset " + std::to_string(expected - slab.address) + ": " + what;
    };
    if (!tree_.next(at) || at.address() != expected) return wrong("a gap or an overlap");
    if (at.is_guard()) return wrong("an entry without granules");
    if (at.granules() > (end - expected) >> kGranuleShift) return wrong("reaches beyond the end");
    if (at.is_hole() && after_hole) return wrong("two holes side by side");
    after_hole = at.is_hole();
    if (!after_hole) {
      (is_retired(at) ? tally.retired_granules : tally.used_granules) += at.granules();
      ++(is_retired(at) ? tally.retired_blocks : tally.blocks);
      const std::uint32_t slack = at.mark() & ~kRetired;
      if (slack > kGranuleBytes || (slack == kGranuleBytes && at.granules() != 1))
        return wrong("an impossible request");
      continue;
    }
    tally.free_granules += at.granules();
    ++tally.holes;
    tally.largest = std::max(tally.largest, at.granules());
    if (at.granules() < SizeBins::kSmallestGranules) {
      if (at.mark() != 0) return wrong("a small hole has a mark");
      continue;
    }
    const SizeBins::Record *record = bins_.record(at.mark());
    if (at.mark() != 0 && (record == nullptr || record->address != at.address() || record->granules != at.granules())) {
      return wrong("a large hole and its bin disagree");
    }
    ++(at.mark() != 0 ? tally.binned : tally.unbinned);
  }
  return "";
}

}  // namespace ration::pool
