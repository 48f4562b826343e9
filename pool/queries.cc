// Queries about blocks and slabs; names and marks.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>
#include <new>

#include "pool/pool.h"

namespace ration::pool {

Block Pool::describe(std::uint32_t block) const noexcept {
  const Address address = nodes_.at(block).address();
  const std::uint64_t bytes = pool::bytes_of(size_of(nodes_, block));
  return {address, bytes, bytes - nodes_.at(block).slack(), region_at(address)->slab.id};
}

// The walk is short because an index sample or a hole is always near.
std::uint32_t Pool::node_around(const Region &region, std::uint64_t unit) const noexcept {
  const std::uint32_t entry = index_.find_before(unit);
  const bool inside = entry != 0 && nodes_.at(entry).unit() >= nodes_.at(region.begin).unit();
  std::uint32_t at = inside ? entry : region.begin;
  while (nodes_.at(nodes_.at(at).next).unit() <= unit) at = nodes_.at(at).next;
  return at;
}

std::uint32_t Pool::node_around(Address address) const noexcept {
  const Region *region = region_at(address);
  const std::uint64_t unit = address >> kUnitShift;
  const bool inside =
      region != nullptr && unit >= nodes_.at(region->begin).unit() && unit < nodes_.at(region->end).unit();
  return inside ? node_around(*region, unit) : 0;
}

std::uint32_t Pool::block_around(Address address) const noexcept {
  if (const std::uint32_t block = place_of(address, false).node; block != 0) return block;
  const std::uint32_t node = node_around(address);
  return node != 0 && nodes_.at(node).is_block() && !nodes_.at(node).is_retired() ? node : 0;
}

std::optional<Block> Pool::find(Address address) const noexcept {
  const std::uint32_t block = block_around(address);
  return block == 0 ? std::nullopt : std::optional(describe(block));
}

std::uint64_t Pool::name(Address address, std::uint64_t fresh) noexcept {
  const std::uint32_t block = block_around(address);
  if (block == 0) return 0;
  if (nodes_.at(block).is_named()) return names_.find(block)->second;
  try {
    names_.emplace(block, fresh);
  } catch (const std::bad_alloc &) {
    return 0;
  }
  nodes_.at(block).named();
  return fresh;
}

bool Pool::mark(Address address, bool marked) noexcept {
  const std::uint32_t block = block_around(address);
  if (block != 0) nodes_.at(block).mark(marked);
  return block != 0;
}

bool Pool::is_marked(Address address) const noexcept {
  const std::uint32_t block = block_around(address);
  return block != 0 && nodes_.at(block).is_marked();
}

std::size_t Pool::live_blocks(Address from, Block *blocks, std::size_t count) const noexcept {
  std::size_t found = 0;
  const auto after = std::upper_bound(regions_.begin(), regions_.end(), from, starts_after);
  auto region = after == regions_.begin() ? after : std::prev(after);
  for (; region != regions_.end() && found < count; ++region) {
    std::uint32_t at = region->begin;
    const std::uint64_t unit = from >> kUnitShift;
    if (unit >= nodes_.at(region->end).unit()) continue;
    if (unit > nodes_.at(at).unit()) at = node_around(*region, unit);
    for (; at != region->end && found < count; at = nodes_.at(at).next) {
      const Node &node = nodes_.at(at);
      if (node.address() >= from && node.is_block() && !node.is_retired()) blocks[found++] = describe(at);
    }
  }
  return found;
}

std::optional<Slab> Pool::slab_of(Address address) const noexcept {
  const Region *region = region_at(address);
  return region == nullptr ? std::nullopt : std::optional<Slab>(region->slab);
}

std::size_t Pool::slabs(Address from, Slab *slabs, std::size_t count) const noexcept {
  auto region = std::lower_bound(regions_.begin(), regions_.end(), from,
                                 [](const Region &each, Address value) { return each.slab.address < value; });
  std::size_t found = 0;
  for (; region != regions_.end() && found < count; ++region) slabs[found++] = region->slab;
  return found;
}

Statistics Pool::statistics() noexcept {
  flush_cached_hole();
  std::uint64_t slab_bytes = 0;
  for (const Region &region : regions_) slab_bytes += region.slab.bytes;
  return {.slab_bytes = slab_bytes - pool::bytes_of(withheld_units_),
          .used_bytes = pool::bytes_of(used_units_),
          .retired_bytes = pool::bytes_of(retired_units_),
          .free_bytes = pool::bytes_of(usable_units_ - used_units_ - retired_units_),
          .largest_hole = pool::bytes_of(index_.largest()),
          .blocks = live_count_,
          .retired_blocks = retired_count_,
          .holes = holes_,
          .slabs = regions_.size(),
          .metadata_bytes = sizeof(*this) + nodes_.host_bytes() + blocks_.host_bytes() + index_.host_bytes() +
                            bins_.host_bytes() + regions_.capacity() * sizeof(Region) +
                            names_.bucket_count() * sizeof(void *) +
                            names_.size() * (sizeof(*names_.begin()) + sizeof(void *))};
}

}  // namespace ration::pool
