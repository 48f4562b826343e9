// Adds slabs to a Pool and removes them.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>
#include <new>

#include "pool/pool.h"

namespace ration::pool {
namespace {

std::uint64_t first_usable(const Slab &slab) {
  return (slab.address + kUnitBytes - 1) >> kUnitShift;
}
std::uint64_t usable_end(const Slab &slab) {
  return (slab.address + slab.bytes) >> kUnitShift;
}

}  // namespace

const Pool::Region *Pool::region_at(Address address) const noexcept {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address, starts_after);
  if (after == regions_.begin()) return nullptr;
  --after;
  return address - after->slab.address < after->slab.bytes ? &*after : nullptr;
}

const Pool::Region &Pool::look_up_region(Address address) noexcept {
  const Region *region = region_at(address);
  recent_region_ = static_cast<std::size_t>(region - regions_.data());
  return *region;
}

AddSlabOutcome Pool::add_slab(const Slab &slab) noexcept {
  if (slab.bytes > kMaximumBytes || slab.address > kAddressEnd - slab.bytes) return AddSlabOutcome::kTooLarge;
  if (usable_end(slab) <= first_usable(slab)) return AddSlabOutcome::kTooSmall;
  const auto place = std::upper_bound(regions_.begin(), regions_.end(), slab.address, starts_after);
  if (place != regions_.end() && slab.address + slab.bytes > place->slab.address) return AddSlabOutcome::kOverlaps;
  if (place != regions_.begin() && region_at(slab.address) != nullptr) return AddSlabOutcome::kOverlaps;
  if (!nodes_.prepare(3) || !index_.prepare()) return AddSlabOutcome::kNoHostMemory;
  std::vector<Region>::iterator region;
  try {
    region = regions_.insert(place, {slab, 0, 0});
  } catch (const std::bad_alloc &) {
    return AddSlabOutcome::kNoHostMemory;
  }
  flush_cached_hole();
  region->begin = new_node(first_usable(slab), 0, 0, Node::Kind::kSentinel);
  const std::uint32_t hole = new_node(first_usable(slab), region->begin, 0, Node::Kind::kHole);
  region->end = new_node(usable_end(slab), hole, 0, Node::Kind::kSentinel);
  const std::uint64_t units = size_of(nodes_, hole);
  ++holes_;
  usable_units_ += units;
  enter_bin(hole, units);
  index_.add(hole, units);
  return AddSlabOutcome::kAdded;
}

bool Pool::wholly_free(const Region &region) const noexcept {
  const Node &first = nodes_.at(nodes_.at(region.begin).next);
  return first.is_hole() && first.next == region.end;
}

std::optional<Slab> Pool::wholly_free_slab() const noexcept {
  const auto found =
      std::find_if(regions_.begin(), regions_.end(), [this](const Region &region) { return wholly_free(region); });
  return found == regions_.end() ? std::nullopt : std::optional<Slab>(found->slab);
}

bool Pool::remove_slab(std::uint64_t id) noexcept {
  const auto region =
      std::find_if(regions_.begin(), regions_.end(), [id](const Region &each) { return each.slab.id == id; });
  if (region == regions_.end() || !wholly_free(*region)) return false;
  flush_cached_hole();
  const std::uint32_t hole = nodes_.at(region->begin).next;
  const std::uint64_t units = size_of(nodes_, hole);
  leave_bin(hole, units);
  if (nodes_.at(hole).leaf() == 0) --unindexed_;
  drop_node(hole);
  drop_node(region->begin);
  drop_node(region->end);
  --holes_;
  usable_units_ -= units;
  regions_.erase(region);
  recent_region_ = 0;
  return true;
}

void Pool::prepare() noexcept {
  (void)(nodes_.prepare(1) && blocks_.prepare() && index_.prepare());
  bins_.prepare(kMostBinned);
}

bool Pool::reserve(std::size_t blocks) noexcept {
  // In the steady state there is one hole for every two blocks (Knuth's 50 % rule).
  return nodes_.prepare(blocks + blocks / 2) && index_.reserve(blocks / 2 + blocks / 16) && blocks_.prepare(blocks);
}

}  // namespace ration::pool
