// The part of SharedPool for pools of granules: it serves requests for which there is no hole.
// Layer: pool, a leaf (standard library only). Threads: as SharedPool; one thread at a time is here.
#include <memory>
#include <new>
#include <utility>

#include "pool/shared_pool.h"

namespace ration::pool {

bool SharedPool::stitch_from(const stitch::Layout &layout) noexcept try {
  const Guard guard(mutex_);
  auto stitcher = std::make_unique<stitch::Stitcher>(pool_);
  if (!stitcher->open(layout)) return false;
  stitcher_ = std::move(stitcher);
  stitched_from_ = layout.page_bytes;
  page_bytes_ = layout.page_bytes;
  most_granule_bytes_ = layout.granule_bytes;
  return true;
} catch (const std::bad_alloc &) {
  return false;
}

bool SharedPool::is_taken(std::uint64_t bytes) noexcept {
  if (!stitcher_->takes(bytes)) return false;
  least_missed_ = std::min(least_missed_, bytes);  // so that is_taken() does not note this request twice
  return true;
}

FreeOutcome SharedPool::end_view(Address address, stitch::View::State state) noexcept {
  return stitcher_ == nullptr ? FreeOutcome{FreeOutcome::Kind::kNotABlock, 0} : stitcher_->end(address, state);
}

FreeOutcome SharedPool::retire_view(Address address, std::uint64_t most, FreeOutcome known) noexcept {
  if (known.kind != FreeOutcome::Kind::kNotABlock || stitcher_ == nullptr) return known;
  return stitcher_->retire(address, most);
}

// Holds the lock once before the driver calls and once after them, so that no other thread takes the room. Two plans
// never run at once: the memory of a handle that one plan releases returns to the device only when the other plan has
// unmapped the views of it. A plan that runs never waits.
AllocateOutcome SharedPool::carry_out(std::uint64_t bytes, Planned what, stitch::DeviceMemory &memory,
                                      stitch::Plan &plan) noexcept {
  bool runs = false;
  const bool releases = what == Planned::release;
  {
    const Guard guard(mutex_);
    while (plan_runs_) changed_.wait(mutex_);
    if (stitcher_ == nullptr) return pool_.no_room();
    const bool planned = releases                 ? stitcher_->plan_release(bytes, plan) != 0
                         : what == Planned::block ? stitcher_->plan(bytes, plan)
                                                  : stitcher_->plan_home(plan);
    runs = plan.needs_driver();
    if (!planned && !runs) return pool_.no_room();
    plan_runs_ = runs;
    removed_ += releases ? 1 : 0;
  }
  if (runs) plan.execute(memory);
  const Guard guard(mutex_);
  if (runs) {
    plan_runs_ = false;
    returned_ += releases ? 1 : 0;
    changed_.notify_all();
  }
  least_missed_ = kNoneMissed;
  if (const std::optional<Block> block = stitcher_->finish(bytes, plan)) {
    return {AllocateOutcome::Kind::kAllocated, *block, 0};
  }
  return what == Planned::block || what == Planned::home ? search(bytes) : pool_.no_room();
}

bool SharedPool::grow_stock(const GrowthWish &wish, Upstream &upstream) noexcept {
  if (wish.bytes == 0) return true;
  const std::vector<Slab> granules = upstream.grow(wish);
  bool grown = !granules.empty();
  for (const Slab &granule : granules) {
    bool added = false;
    {
      const Guard guard(mutex_);
      added = stitcher_->add(granule.id, granule.bytes);
    }
    if (!added) upstream.shrink(granule);  // the host has no memory
    grown = grown && added;
  }
  return grown;
}

// First tries to make one contiguous stretch in the home range, if that needs no effort. Otherwise combines free parts
// from anywhere, and new memory if they do not suffice.
AllocateOutcome SharedPool::stitch_from_stock(std::uint64_t bytes, Upstream &upstream,
                                              stitch::DeviceMemory &memory) noexcept {
  AllocateOutcome outcome{AllocateOutcome::Kind::kNoRoom, {}, 0};
  bool contiguous = true;
  std::uint64_t missing = 0;
  {
    const Guard guard(mutex_);
    contiguous = bytes < page_bytes_ || !stitcher_->counts().scarce;
    missing = stitcher_->missing_at_end(bytes);
  }
  const auto attempt = [&](Planned what) {
    stitch::Plan plan;
    outcome = carry_out(bytes, what, memory, plan);
  };
  if (contiguous) {
    if (bytes >= page_bytes_) attempt(Planned::home);
    if (!outcome && grow_stock({missing, most_granule_bytes_, true}, upstream)) {
      attempt(bytes < page_bytes_ ? Planned::block : Planned::home);
    }
  }
  if (!outcome) attempt(Planned::block);
  if (!outcome) {
    {
      const Guard guard(mutex_);
      missing = stitcher_->missing_bytes();
    }
    if (grow_stock({missing, most_granule_bytes_}, upstream)) attempt(Planned::block);
  }
  return outcome;
}

AllocateOutcome SharedPool::stitch_for(std::uint64_t bytes, Upstream &upstream) noexcept {
  AllocateOutcome outcome{AllocateOutcome::Kind::kNoHostMemory, {}, 0};
  if (stitch::DeviceMemory *memory = upstream.memory()) outcome = stitch_from_stock(bytes, upstream, *memory);
  if (outcome.kind == AllocateOutcome::Kind::kNoRoom) {  // memory that was kept for views may have become a hole
    const Guard guard(mutex_);
    outcome = pool_.allocate(bytes);
  }
  give_up_growth();
  return outcome;
}

bool SharedPool::add_granule(std::uint64_t handle, std::uint64_t bytes, stitch::DeviceMemory &memory) noexcept {
  {
    const Guard guard(mutex_);
    if (!stitcher_->add(handle, bytes)) return false;
    pool_.set_growing(false);
  }
  stitch::Plan plan;
  (void)carry_out(0, Planned::addition, memory, plan);  // without a place the pool has it for views
  return true;
}

std::uint64_t SharedPool::release_granules(std::uint64_t bytes, stitch::DeviceMemory &memory) noexcept {
  stitch::Plan plan;
  (void)carry_out(bytes, Planned::release, memory, plan);
  std::uint64_t released = 0;
  for (const stitch::Plan::Release &each : plan.releases) released += each.done ? each.bytes : 0;
  return released;
}

std::uint64_t SharedPool::gather_granules() noexcept {
  const Guard guard(mutex_);
  while (plan_runs_) changed_.wait(mutex_);  // what it moves is in no count until it has finished
  return stitcher_ == nullptr ? 0 : stitcher_->gather();
}

stitch::Stitcher::Everything SharedPool::everything() const {
  const Guard guard(mutex_);
  return stitcher_ == nullptr ? stitch::Stitcher::Everything{} : stitcher_->everything();
}

stitch::Stitcher::Counts SharedPool::stitch_counts() const noexcept {
  const Guard guard(mutex_);
  return stitcher_ == nullptr ? stitch::Stitcher::Counts{} : stitcher_->counts();
}

stitch::Stitcher::Parts SharedPool::parts_of(const Block &block) const {
  const Guard guard(mutex_);
  return stitcher_ == nullptr ? stitch::Stitcher::Parts{} : stitcher_->parts(block);
}

std::vector<stitch::Stitcher::Backing> SharedPool::backing(const Block &block) const {
  const Guard guard(mutex_);
  return stitcher_->backing(block);
}

}  // namespace ration::pool
