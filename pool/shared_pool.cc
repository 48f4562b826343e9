#include "pool/shared_pool.h"

#include <array>
#include <memory>

namespace ration::pool {

AllocateOutcome SharedPool::allocate(std::uint64_t bytes, Upstream &upstream) noexcept {
  AllocateOutcome outcome = hit(bytes);  // one object: a second one costs a third of a hit
  if (outcome.kind == AllocateOutcome::Kind::kNoRoom && bytes <= kMostBytes) [[unlikely]] {
    outcome = allocate_from(upstream, bytes);
  }
  return outcome;
}

AllocateOutcome SharedPool::hit(std::uint64_t bytes) noexcept {
  const Guard guard(mutex_);
  const AllocateOutcome outcome = search(bytes);
  pool_.prepare();
  return outcome;
}

AllocateOutcome SharedPool::search(std::uint64_t bytes) noexcept {
  return bytes >= least_missed_ ? pool_.no_room() : search_anew(bytes);
}

AllocateOutcome SharedPool::allocate_from(Upstream &upstream, std::uint64_t bytes) noexcept {
  using Kind = AllocateOutcome::Kind;
  for (AllocateOutcome outcome{Kind::kNoRoom, {}, 0};; outcome = hit(bytes)) {
    if (outcome.kind != Kind::kNoRoom) return outcome;
    if (upstream.collect()) continue;
    std::uint64_t returned = 0;
    {
      const Guard guard(mutex_);
      if (outcome = search(bytes); outcome.kind != Kind::kNoRoom) return outcome;  // another thread has grown the pool
      if (grower_ != std::thread::id()) {
        while (grower_ != std::thread::id()) changed_.wait(mutex_);
        continue;
      }
      grower_ = std::this_thread::get_id();
      returned = returned_;
    }
    if (outcome = grow_for(bytes, upstream); outcome.kind != Kind::kNoRoom) return outcome;
    {
      // While this thread's grow() ran, slabs that another thread was returning still counted as used.
      const Guard guard(mutex_);
      while (returned_ == returned && returned_ != removed_) changed_.wait(mutex_);
      if (returned_ != returned) continue;
    }
    if (upstream.wait()) continue;
    const Guard guard(mutex_);
    return search(bytes);  // another thread may have freed a block, or reclaimed what both threads waited for
  }
}

// REQUIRES: this thread is the grower. It is no longer the grower afterwards.
AllocateOutcome SharedPool::grow_for(std::uint64_t bytes, Upstream &upstream) noexcept {
  if (stitches()) return stitch_for(bytes, upstream);
  using Kind = AllocateOutcome::Kind;
  const std::vector<Slab> slabs = upstream.grow({Pool::slab_bytes_for(bytes)});
  AddSlabOutcome added = AddSlabOutcome::kAdded;
  AllocateOutcome outcome{};
  {
    // One critical section, so that no other thread takes the new slab before our allocation.
    const Guard guard(mutex_);
    if (!slabs.empty()) added = add_slab_locked(slabs.front());
    outcome = search(bytes);  // even without a slab: another thread may have freed a block
  }
  if (added != AddSlabOutcome::kAdded) upstream.shrink(slabs.front());  // before another thread requests these bytes
  if (added == AddSlabOutcome::kNoHostMemory && outcome.kind == Kind::kNoRoom) outcome.kind = Kind::kNoHostMemory;
  give_up_growth();
  return outcome;
}

void SharedPool::give_up_growth() noexcept {
  const Guard guard(mutex_);
  if (grower_ == std::this_thread::get_id()) {
    grower_ = {};
    merging_ = false;
    changed_.notify_all();
  }
}

FreeOutcome SharedPool::free(Address address) noexcept {
  const Guard guard(mutex_);
  return free_locked(address);
}

FreeOutcome SharedPool::retire(Address address) noexcept {
  const Guard guard(mutex_);
  return retire_locked(address);
}

FreeOutcome SharedPool::reclaim(Address address) noexcept {
  const Guard guard(mutex_);
  return reclaim_locked(address);
}

SharedPool::Reclaimed SharedPool::reclaim(const Address *addresses, std::size_t count) noexcept {
  Reclaimed reclaimed{0, 0};
  const Guard guard(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    if (const FreeOutcome outcome = reclaim_locked(addresses[i])) {
      ++reclaimed.blocks;
      reclaimed.bytes += outcome.bytes;
    }
  }
  return reclaimed;
}

std::optional<Block> SharedPool::find(Address address) const noexcept {
  const Guard guard(mutex_);
  const stitch::View *view = view_around(address);
  return view == nullptr ? pool_.find(address) : stitcher_->describe(*view);
}

std::uint64_t SharedPool::name(Address address, std::uint64_t fresh) noexcept {
  const Guard guard(mutex_);
  stitch::View *view = view_around(address);
  if (view == nullptr) return pool_.name(address, fresh);
  if (view->name == 0) view->name = fresh;
  return view->name;
}

bool SharedPool::mark(Address address, bool marked) noexcept {
  const Guard guard(mutex_);
  stitch::View *view = view_around(address);
  if (view == nullptr) return pool_.mark(address, marked);
  view->marked = marked;
  return true;
}

bool SharedPool::is_marked(Address address) const noexcept {
  const Guard guard(mutex_);
  const stitch::View *view = view_around(address);
  return view == nullptr ? pool_.is_marked(address) : view->marked;
}

std::optional<Slab> SharedPool::slab_of(Address address) const noexcept {
  const Guard guard(mutex_);
  return pool_.slab_of(address);
}

std::size_t SharedPool::live_blocks(Address from, Block *blocks, std::size_t count) const noexcept {
  const Guard guard(mutex_);
  const std::size_t found = pool_.live_blocks(from, blocks, count);
  // The addresses of views lie above the home range.
  return found == count || stitcher_ == nullptr ? found
                                                : found + stitcher_->live_blocks(from, blocks + found, count - found);
}

std::size_t SharedPool::slabs(Address from, Slab *slabs, std::size_t count) const noexcept {
  const Guard guard(mutex_);
  return pool_.slabs(from, slabs, count);
}

AddSlabOutcome SharedPool::add_slab(const Slab &slab) noexcept {
  const Guard guard(mutex_);
  const AddSlabOutcome outcome = add_slab_locked(slab);
  pool_.prepare();
  return outcome;
}

bool SharedPool::has_hole(std::uint64_t bytes) noexcept {
  const Guard guard(mutex_);
  return pool_.has_hole(bytes);
}

std::uint64_t SharedPool::free_granule_bytes() noexcept {
  const Guard guard(mutex_);
  return stitcher_ != nullptr ? stitcher_->free_granule_bytes() : 0;
}

bool SharedPool::may_serve(std::uint64_t bytes) noexcept {
  const Guard guard(mutex_);
  return pool_.has_hole(bytes) || (stitcher_ != nullptr && stitcher_->free_granule_bytes() >= bytes);
}

bool SharedPool::has_wholly_free_slab() const noexcept {
  const Guard guard(mutex_);
  return pool_.wholly_free_slab().has_value();
}

std::uint64_t SharedPool::give_back(Upstream &upstream, std::uint64_t wanted_bytes) noexcept {
  for (std::uint64_t bytes = 0;;) {
    std::optional<Slab> slab;
    bool counted = false;
    {
      const Guard guard(mutex_);
      if (wanted_bytes <= kMaximumBytes && pool_.has_hole(wanted_bytes)) return bytes;
      slab = pool_.wholly_free_slab();
      if (!slab || !pool_.remove_slab(slab->id)) return bytes;
      counted = grower_ != std::this_thread::get_id();  // the grower knows which slabs it returns itself
      if (counted) ++removed_;
    }
    upstream.shrink(*slab);
    bytes += slab->bytes;
    if (!counted) continue;
    const Guard guard(mutex_);
    ++returned_;
    changed_.notify_all();
  }
}

bool SharedPool::merge(Upstream &upstream) noexcept {
  std::array<Slab, 32> slabs;
  std::size_t count = 0;
  {
    // One critical section, so that no other thread meanwhile places a block in one of these slabs.
    const Guard guard(mutex_);
    if (grower_ != std::thread::id()) {
      while (merging_) changed_.wait(mutex_);
      return false;
    }
    while (count < slabs.size()) {
      const std::optional<Slab> slab = pool_.wholly_free_slab();
      if (!slab || !pool_.remove_slab(slab->id)) break;
      slabs[count++] = *slab;
    }
    if (count == 0) return false;
    grower_ = std::this_thread::get_id();
    merging_ = true;
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    upstream.shrink(slabs[i]);
    bytes += slabs[i].bytes;
  }
  for (const Slab &slab : upstream.grow({bytes})) {
    if (add_slab(slab) != AddSlabOutcome::kAdded) upstream.shrink(slab);
  }
  give_up_growth();
  return true;
}

void SharedPool::reset() noexcept RATION_POOL_ANNOTATE(no_thread_safety_analysis) {
  stitcher_.reset();
  stitched_from_ = kNever;
  page_bytes_ = 0;
  std::destroy_at(&pool_);
  std::construct_at(&pool_);
  grower_ = {};
  merging_ = false;
  removed_ = returned_ = failed_searches_ = 0;
  least_missed_ = kNoneMissed;
}

bool SharedPool::reserve(std::size_t blocks) noexcept {
  const Guard guard(mutex_);
  return pool_.reserve(blocks);
}

Statistics SharedPool::statistics() noexcept {
  const Guard guard(mutex_);
  Statistics sums = pool_.statistics();
  if (stitcher_ == nullptr) return sums;
  const stitch::Stitcher::Counts counts = stitcher_->counts();
  sums.slab_bytes = counts.granule_bytes;
  sums.used_bytes += counts.live_bytes;
  sums.blocks += counts.live;
  sums.retired_bytes += counts.retired_bytes;
  sums.retired_blocks += counts.retired;
  sums.free_bytes = counts.granule_bytes - sums.used_bytes - sums.retired_bytes;
  sums.largest_hole = std::max(sums.largest_hole, counts.stock_bytes);
  return sums;
}

std::uint64_t SharedPool::failed_searches() const noexcept {
  const Guard guard(mutex_);
  return failed_searches_;
}

}  // namespace ration::pool
