// A Pool that several threads can use and that grows from an upstream.
// Layer: pool, a leaf (standard library only). Threads: any thread may call anything; one innermost lock, never held
// across an upstream call. Owns: the pool. The destructor returns no slab to the upstream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pool/lock.h"
#include "pool/pool.h"
#include "pool/stitch/stitcher.h"
#include "pool/upstream.h"

namespace ration::pool {

class SharedPool {
 public:
  // The largest request that is passed on to the upstream: a slab for a larger request would exceed the size limit.
  static constexpr std::uint64_t kMostBytes = kMaximumBytes - 2 * kUnitBytes;

  SharedPool() = default;
  SharedPool(const SharedPool &) = delete;
  SharedPool &operator=(const SharedPool &) = delete;

  // Makes this a pool of granules: the upstream's grow() returns handles of physical memory from now on. REQUIRES:
  // nothing has been allocated yet. Returns false if host memory has run out.
  bool stitch_from(const stitch::Layout &layout) noexcept;
  // True after stitch_from().
  [[nodiscard]] bool stitches() const noexcept { return page_bytes_ != 0; }
  // Maps a granule, which the upstream has already created, to a place where blocks can lie. For use before the first
  // request.
  bool add_granule(std::uint64_t handle, std::uint64_t bytes, stitch::DeviceMemory &memory) noexcept;
  // Releases empty granules: at least `bytes` in all, or every one if together they have less. Returns how many bytes
  // it released. May run while another thread grows the pool.
  std::uint64_t release_granules(std::uint64_t bytes, stitch::DeviceMemory &memory) noexcept;
  [[nodiscard]] std::uint64_t gather_granules() noexcept;
  // The mappings and handles of the stitcher (Stitcher::everything). Throws std::bad_alloc.
  [[nodiscard]] stitch::Stitcher::Everything everything() const;
  [[nodiscard]] stitch::Stitcher::Counts stitch_counts() const noexcept;
  [[nodiscard]] std::vector<stitch::Stitcher::Backing> backing(const Block &block) const;
  // The granules in which a live block lies; empty if the block is not live or the pool has no granules. Throws
  // bad_alloc.
  [[nodiscard]] stitch::Stitcher::Parts parts_of(const Block &block) const;

  // If there is no room, collects clean blocks, grows, and waits for retired blocks; returns kNoRoom only when none of
  // these helps any more. One thread grows at a time and the others wait for it, so that no request is refused while
  // memory is on its way to the pool or back to the upstream.
  AllocateOutcome allocate(std::uint64_t bytes, Upstream &upstream) noexcept;
  FreeOutcome free(Address address) noexcept;
  FreeOutcome retire(Address address) noexcept;
  FreeOutcome reclaim(Address address) noexcept;
  // Reclaims several blocks under one lock; returns how many blocks and bytes it reclaimed.
  struct Reclaimed {
    std::uint64_t blocks;
    std::uint64_t bytes;
  };
  Reclaimed reclaim(const Address *addresses, std::size_t count) noexcept;
  [[nodiscard]] std::optional<Block> find(Address address) const noexcept;
  std::uint64_t name(Address address, std::uint64_t fresh) noexcept;
  bool mark(Address address, bool marked) noexcept;
  [[nodiscard]] bool is_marked(Address address) const noexcept;
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const noexcept;
  // Like the functions of the same names in Pool. Each call is one snapshot; changes between two calls may be missed.
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const noexcept;
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const noexcept;

  // For callers that hold the lock. These functions never call the upstream and never obtain host memory: an allocation
  // that needs host memory is refused with kNoHostMemory, and the next allocate() obtains that memory in advance.
  Mutex &mutex() RATION_POOL_ANNOTATE(lock_returned(mutex_)) { return mutex_; }
  void assert_locked() const RATION_POOL_ANNOTATE(assert_capability(mutex_)) {}
  AllocateOutcome allocate_locked(std::uint64_t bytes) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.is_prepared() ? search_anew(bytes) : AllocateOutcome{AllocateOutcome::Kind::kNoHostMemory, {}, 0};
  }
  FreeOutcome free_locked(Address address) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    least_missed_ = kNoneMissed;
    const FreeOutcome outcome = pool_.free(address);
    if (!outcome) [[unlikely]]
      return end_view(address, stitch::View::State::live);
    return outcome;
  }
  FreeOutcome reclaim_locked(Address address) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    least_missed_ = kNoneMissed;
    const FreeOutcome outcome = pool_.reclaim(address);
    if (!outcome) [[unlikely]]
      return end_view(address, stitch::View::State::retired);
    return outcome;
  }
  AddSlabOutcome add_slab_locked(const Slab &slab) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    least_missed_ = kNoneMissed;
    return pool_.add_slab(slab);
  }
  // True if a hole of `bytes` exists, or very likely exists.
  bool has_room_locked(std::uint64_t bytes) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.has_ample_room(bytes) || pool_.has_hole(bytes);
  }
  [[nodiscard]] std::uint64_t retired_bytes_locked() const noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.retired_bytes() + (stitcher_ == nullptr ? 0 : stitcher_->retired_bytes());
  }
  [[nodiscard]] std::uint64_t used_bytes_locked() const noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.used_bytes() + (stitcher_ == nullptr ? 0 : stitcher_->live_bytes());
  }
  [[nodiscard]] bool is_in_one_piece_locked() const noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.is_in_one_piece();
  }
  FreeOutcome retire_locked(Address address, std::uint64_t most = UINT64_MAX) noexcept
      RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    const FreeOutcome outcome = pool_.retire(address, most);
    if (!outcome) [[unlikely]]
      return retire_view(address, most, outcome);
    return outcome;
  }

  // Adds memory that was obtained before the first request.
  AddSlabOutcome add_slab(const Slab &slab) noexcept;
  // Gives wholly free slabs back to the upstream until none is left or a hole holds `wanted_bytes`; returns their
  // bytes. Never waits for another thread, so grow() of this or another pool may call it.
  std::uint64_t give_back(Upstream &upstream, std::uint64_t wanted_bytes = UINT64_MAX) noexcept;
  // Returns the wholly free slabs to the upstream (at most 32 of them), then asks it to grow() by the released bytes.
  // Meanwhile no request of this pool is refused. Returns false if no slab was wholly free or another thread was
  // growing the pool; if that thread was merging, this call has waited for it.
  bool merge(Upstream &upstream) noexcept;
  bool has_hole(std::uint64_t bytes) noexcept;
  // True if one hole has at least `bytes`, or all empty granules together do.
  bool may_serve(std::uint64_t bytes) noexcept;
  // If this thread is the grower, ends its turn; for a thread that will not return from its upstream's grow().
  void give_up_growth() noexcept;
  [[nodiscard]] bool has_wholly_free_slab() const noexcept;

  // Resets the pool, for another user of the same memory. REQUIRES: no other thread uses the blocks or waits for them.
  void reset() noexcept;
  bool reserve(std::size_t blocks) noexcept;
  [[nodiscard]] Statistics statistics() noexcept;
  // The bytes of the granules without a block, from which one request can be served. 0: the pool has slabs.
  [[nodiscard]] std::uint64_t free_granule_bytes() noexcept;
  // The number of searches that found no hole. Each request adds at most one to this number until the pool grows, gets
  // a slab or reclaims blocks.
  [[nodiscard]] std::uint64_t failed_searches() const noexcept;
  [[nodiscard]] std::string check_invariants() const;

 private:
  static constexpr std::uint64_t kNoneMissed = UINT64_MAX;  // no pool has a hole of this size

  AllocateOutcome hit(std::uint64_t bytes) noexcept;
  // Searches the pool, unless a search for this size or less has failed since anything was last added to the pool.
  AllocateOutcome search(std::uint64_t bytes) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_));
  AllocateOutcome search_anew(std::uint64_t bytes) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    const bool taken = bytes >= stitched_from_ && is_taken(bytes);
    // The outcome is a single object, constructed in place: a second object would cost a tenth of the time of a hit.
    const AllocateOutcome outcome =
        taken ? AllocateOutcome{AllocateOutcome::Kind::kNoRoom, {}, 0} : pool_.allocate(bytes);
    if (outcome.kind == AllocateOutcome::Kind::kNoRoom && !taken) [[unlikely]] {
      ++failed_searches_;
      least_missed_ = std::min(least_missed_, bytes);
    }
    return outcome;
  }
  [[gnu::cold, gnu::noinline]] AllocateOutcome allocate_from(Upstream &upstream, std::uint64_t bytes) noexcept;
  AllocateOutcome grow_for(std::uint64_t bytes, Upstream &upstream) noexcept;
  AllocateOutcome stitch_for(std::uint64_t bytes, Upstream &upstream) noexcept;
  [[gnu::noinline]] bool is_taken(std::uint64_t bytes) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_));
  // The next two functions handle blocks that `pool_` does not know. Cold, to keep them off the path of hits.
  [[gnu::cold, gnu::noinline]] FreeOutcome end_view(Address address, stitch::View::State state) noexcept
      RATION_POOL_ANNOTATE(requires_capability(mutex_));
  [[gnu::cold, gnu::noinline]] FreeOutcome retire_view(Address address, std::uint64_t most, FreeOutcome known) noexcept
      RATION_POOL_ANNOTATE(requires_capability(mutex_));
  [[nodiscard]] stitch::View *view_around(Address address) const noexcept
      RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return stitcher_ == nullptr ? nullptr : stitcher_->around(address);
  }
  enum class Planned { block, home, addition, release };
  // Makes `plan`, executes it and finishes it. If that yields no block and `what` is a request (`block` or `home`),
  // searches the pool.
  AllocateOutcome carry_out(std::uint64_t bytes, Planned what, stitch::DeviceMemory &memory,
                            stitch::Plan &plan) noexcept;
  bool grow_stock(const GrowthWish &wish, Upstream &upstream) noexcept;
  AllocateOutcome stitch_from_stock(std::uint64_t bytes, Upstream &upstream, stitch::DeviceMemory &memory) noexcept;

  mutable Mutex mutex_;
  Condition changed_;  // signals that grower_, merging_, plan_runs_ or returned_ has changed
  Pool pool_ RATION_POOL_ANNOTATE(guarded_by(mutex_));
  std::thread::id grower_ RATION_POOL_ANNOTATE(guarded_by(mutex_));  // default value: no thread
  bool merging_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = false;    // the grower is merging slabs
  // Slabs that threads other than the grower removed, and how many of those the upstream has received.
  std::uint64_t removed_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = 0;
  std::uint64_t returned_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = 0;
  // The bytes of the smallest request that has found no hole since anything was last added to the pool.
  std::uint64_t least_missed_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = kNoneMissed;
  std::uint64_t failed_searches_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = 0;
  std::unique_ptr<stitch::Stitcher> stitcher_ RATION_POOL_ANNOTATE(guarded_by(mutex_));
  bool plan_runs_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = false;  // a plan is making its driver calls
  static constexpr std::uint64_t kNever = UINT64_MAX;
  std::uint64_t stitched_from_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = kNever;  // larger requests ask stitcher_
  std::uint64_t page_bytes_ = 0;                   // written before the first request, like the next member
  std::uint64_t most_granule_bytes_ = UINT64_MAX;  // largest granule by which the pool grows
};

}  // namespace ration::pool
