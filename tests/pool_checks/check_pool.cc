// The invariants of a pool: blocks and holes tile each slab between two sentinels, without gaps, and all sums agree.
// Threads: the caller locks; a SharedPool locks itself.
#include <algorithm>
#include <string>
#include <utility>

#include "pool/shared_pool.h"

namespace ration::pool {

struct Pool::Tally {
  std::uint64_t used_units = 0;
  std::uint64_t retired_units = 0;
  std::uint64_t withheld_units = 0;
  std::uint64_t withheld = 0;
  std::uint64_t free_units = 0;
  std::uint64_t largest = 0;
  std::uint64_t blocks = 0;
  std::uint64_t retired_blocks = 0;
  std::uint64_t holes = 0;
  std::uint64_t binned = 0;
  std::uint64_t entries = 0;
  std::uint64_t named = 0;
  std::uint64_t unindexed = 0;
};

std::string Pool::check_invariants() const {
  if (unflushed_units_ != 0 && index_.cached_hole() == 0) return "a size is unflushed without a cached hole";
  if (std::string wrong = index_.check(unflushed_units_); !wrong.empty()) return "index: " + wrong;
  if (std::string wrong = bins_.check(); !wrong.empty()) return "bins: " + wrong;
  Tally tally;
  for (const Region &region : regions_) {
    if (std::string wrong = check_region(region, tally); !wrong.empty()) {
      return "slab " + std::to_string(region.slab.id) + ": " + wrong;
    }
  }
  if (tally.used_units != used_units_) return "used bytes are miscounted";
  if (tally.retired_units != retired_units_) return "retired bytes are miscounted";
  if (tally.used_units + tally.retired_units + tally.free_units != usable_units_) {
    return "free bytes are miscounted";
  }
  if (tally.withheld_units != withheld_units_) return "withheld bytes are miscounted";
  if (tally.withheld != withheld_count_) return "withheld ranges are miscounted";
  if (tally.blocks != live_count_) return "blocks are miscounted";
  if (tally.retired_blocks != retired_count_) return "retired blocks are miscounted";
  if (tally.holes != holes_) return "holes are miscounted";
  if (unindexed_ == 0 && unflushed_units_ == 0 && tally.largest != index_.largest()) return "the largest hole is wrong";
  if (tally.entries != index_.entries()) return "the index has other entries than the nodes";
  if (tally.unindexed != unindexed_) return "unindexed holes are miscounted";
  if (tally.blocks + tally.retired_blocks + tally.withheld != blocks_.size())
    return "the map has other entries than the blocks";
  if (tally.named != names_.size()) return "a name without a block";
  if (tally.binned != bins_.size()) return "the bins have other entries than the holes";
  return "";
}

std::string Pool::check_region(const Region &region, Tally &tally) const {
  const auto is_sentinel = [this](std::uint32_t node) { return nodes_.at(node).kind() == Node::Kind::kSentinel; };
  if (!is_sentinel(region.begin) || nodes_.at(region.begin).unit() != units_of(region.slab.address)) {
    return "does not begin with its sentinel";
  }
  const std::uint64_t end = (region.slab.address + region.slab.bytes) >> kUnitShift;
  if (!is_sentinel(region.end) || nodes_.at(region.end).unit() != end) return "does not end with its sentinel";
  bool after_hole = false;
  for (std::uint32_t before = region.begin, at = nodes_.at(before).next; at != region.end; at = nodes_.at(at).next) {
    const Node &node = nodes_.at(at);
    const auto wrong = [&](const char *what) {
      return "at offset " + std::to_string(node.address() - region.slab.address) + ": " + what;
    };
    if (node.previous != before || nodes_.at(node.next).previous != at) return wrong("a broken link");
    const std::uint64_t least = nodes_.at(before).unit() + (before == region.begin ? 0 : 1);
    if (node.unit() < least || node.unit() >= end) return wrong("out of order");
    if (before == region.begin && node.unit() != nodes_.at(before).unit()) return wrong("a gap before it");
    before = at;
    const std::uint64_t units = size_of(nodes_, at);
    tally.entries += node.leaf() != 0 ? 1 : 0;
    if (node.is_block()) {
      after_hole = false;
      (node.is_withheld() ? tally.withheld_units : node.is_retired() ? tally.retired_units : tally.used_units) += units;
      ++(node.is_withheld() ? tally.withheld : node.is_retired() ? tally.retired_blocks : tally.blocks);
      tally.named += node.is_named() && !node.is_retired() ? 1 : 0;
      if (node.is_named() && !node.is_retired() && !names_.contains(at)) return wrong("a named block without a name");
      if (blocks_.find(node.unit()) != at) return wrong("a block that is not in the map");
      if (node.slack() > kUnitBytes || (node.slack() == kUnitBytes && units != 1)) {
        return wrong("an impossible request");
      }
      continue;
    }
    if (!node.is_hole()) return wrong("a sentinel in the middle");
    if (std::exchange(after_hole, true)) return wrong("two adjacent holes");
    tally.free_units += units;
    ++tally.holes;
    tally.unindexed += node.leaf() == 0 ? 1 : 0;
    const std::uint64_t indexed = unflushed_units_ != 0 && at == index_.cached_hole() ? unflushed_units_ : units;
    tally.largest = std::max(tally.largest, units);
    if (indexed < SizeBins::kSmallestUnits) {
      if (node.word() != 0) return wrong("a small hole in a bin");
      continue;
    }
    const SizeBins::Record *record = bins_.record(node.word());
    if (node.word() != 0 && (record == nullptr || record->hole != at || record->units != indexed)) {
      return wrong("a large hole and its bin disagree");
    }
    tally.binned += node.word() != 0 ? 1 : 0;
  }
  return "";
}

std::vector<Pool::Hole> Pool::withheld_ranges() const {
  std::vector<Hole> ranges;
  for (const Region &region : regions_) {
    for (std::uint32_t at = nodes_.at(region.begin).next; at != region.end; at = nodes_.at(at).next) {
      const Node &node = nodes_.at(at);
      if (node.is_block() && node.is_withheld()) ranges.push_back({node.address(), bytes_of(size_of(nodes_, at))});
    }
  }
  return ranges;
}

std::string SharedPool::check_invariants() const {
  const Guard guard(mutex_);
  if (std::string wrong = pool_.check_invariants(); !wrong.empty() || stitcher_ == nullptr) return wrong;
  // The grower may have a plan under way.
  const std::string wrong = grower_ == std::thread::id() ? stitcher_->check_invariants() : "";
  return wrong.empty() ? "" : "stitcher: " + wrong;
}

}  // namespace ration::pool
