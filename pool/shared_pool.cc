#include "pool/shared_pool.h"

namespace ration::pool {

AllocateOutcome SharedPool::allocate(std::uint64_t bytes) noexcept {
  using Kind = AllocateOutcome::Kind;
  {
    const Guard guard(mutex_);
    const AllocateOutcome outcome = pool_.allocate(bytes);
    if (outcome.kind != Kind::kNoRoom || bytes > kMaximumBytes - 2 * kGranuleBytes) return outcome;
  }
  if (upstream_.wait()) {
    const Guard guard(mutex_);
    const AllocateOutcome outcome = pool_.allocate(bytes);
    if (outcome.kind != Kind::kNoRoom) return outcome;
  }
  return grow_for(bytes);
}

AllocateOutcome SharedPool::grow_for(std::uint64_t bytes) noexcept {
  const std::optional<Slab> slab = upstream_.grow(Pool::slab_bytes_for(bytes));
  bool added = false;
  AllocateOutcome outcome{};
  {
    // One critical section: nobody else may take the new room between its arrival and our allocation.
    const Guard guard(mutex_);
    added = slab && pool_.add_slab(*slab) == AddSlabOutcome::kAdded;
    outcome = pool_.allocate(bytes);  // even where nothing came: somebody may have freed meanwhile
  }
  if (slab && !added) upstream_.shrink(slab->id);
  return outcome;
}

FreeOutcome SharedPool::free(Address address) noexcept {
  const Guard guard(mutex_);
  return pool_.free(address);
}

std::optional<Block> SharedPool::find(Address address) const noexcept {
  const Guard guard(mutex_);
  return pool_.find(address);
}

std::optional<Slab> SharedPool::slab_of(Address address) const noexcept {
  const Guard guard(mutex_);
  return pool_.slab_of(address);
}

AddSlabOutcome SharedPool::add_slab(const Slab &slab) noexcept {
  const Guard guard(mutex_);
  return pool_.add_slab(slab);
}

std::uint64_t SharedPool::give_back() noexcept {
  std::uint64_t bytes = 0;
  for (;;) {
    std::optional<std::uint64_t> id;
    {
      const Guard guard(mutex_);
      const std::uint64_t before = pool_.statistics().slab_bytes;
      id = pool_.wholly_free_slab();
      if (!id || !pool_.remove_slab(*id)) return bytes;
      bytes += before - pool_.statistics().slab_bytes;
    }
    upstream_.shrink(*id);
  }
}

bool SharedPool::reserve(std::size_t blocks) noexcept {
  const Guard guard(mutex_);
  return pool_.reserve(blocks);
}

Statistics SharedPool::statistics() const noexcept {
  const Guard guard(mutex_);
  return pool_.statistics();
}

std::string SharedPool::check_invariants() const {
  const Guard guard(mutex_);
  return pool_.check_invariants();
}

}  // namespace ration::pool
