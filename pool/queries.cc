// What a Pool tells about its blocks and slabs without changing any.
// Layer: pool, a leaf (standard library only). Threads: the caller locks.
#include <algorithm>

#include "pool/pool.h"

namespace ration::pool {

Block Pool::block_at(const Position &block) const noexcept {
  const std::uint64_t bytes = pool::bytes_of(block.granules());
  return {block.address(), bytes, bytes - (block.mark() & kSlackMask), slab_at(block.address())->id};
}

std::optional<Block> Pool::find(Address address) const noexcept {
  Position block;
  if (!tree_.find(address, block) || block.is_hole() || is_retired(block)) return std::nullopt;
  if (address - block.address() >= pool::bytes_of(block.granules())) return std::nullopt;  // a guard has no bytes
  return block_at(block);
}

std::size_t Pool::live_blocks(Address from, Block *blocks, std::size_t count) const noexcept {
  Position at;
  bool more = tree_.find(from, at) ? at.address() == from || tree_.next(at) : tree_.first(at);
  std::size_t found = 0;
  for (; more && found < count; more = tree_.next(at)) {
    if (!at.is_hole() && !at.is_guard() && !is_retired(at)) blocks[found++] = block_at(at);
  }
  return found;
}

std::optional<Slab> Pool::slab_of(Address address) const noexcept {
  const Slab *slab = slab_at(address);
  return slab == nullptr ? std::nullopt : std::optional<Slab>(*slab);
}

std::size_t Pool::slabs(Address from, Slab *slabs, std::size_t count) const noexcept {
  const auto first = std::lower_bound(slabs_.begin(), slabs_.end(), from,
                                      [](const Slab &slab, Address value) { return slab.address < value; });
  const std::size_t found = std::min(count, static_cast<std::size_t>(slabs_.end() - first));
  std::copy_n(first, found, slabs);
  return found;
}

Statistics Pool::statistics() const noexcept {
  std::uint64_t slab_bytes = 0;
  for (const Slab &slab : slabs_) slab_bytes += slab.bytes;
  return {.slab_bytes = slab_bytes,
          .used_bytes = pool::bytes_of(used_granules_),
          .retired_bytes = pool::bytes_of(retired_granules_),
          .free_bytes = pool::bytes_of(usable_granules_ - used_granules_ - retired_granules_),
          .largest_hole = pool::bytes_of(tree_.largest_hole()),
          .blocks = blocks_,
          .retired_blocks = retired_blocks_,
          .holes = holes_,
          .slabs = slabs_.size(),
          .metadata_bytes = sizeof(*this) + tree_.host_bytes() + bins_.host_bytes() + slabs_.capacity() * sizeof(Slab)};
}

}  // namespace ration::pool
