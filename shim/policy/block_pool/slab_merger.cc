#include "policy/block_pool/slab_merger.h"

#include <algorithm>

#include "base/clock.h"
#include "base/held.h"
#include "policy/block_pool/growth.h"
#include "policy/block_pool/slab_backing.h"
#include "policy/block_pool/slab_releaser.h"
#include "pool/merged_bytes.h"

namespace ration::policy {
namespace {

class MergingUpstream final : public SlabReleaser {
 public:
  MergingUpstream(const PoolCall &call, std::uint64_t expected, std::uint64_t merged)
      : SlabReleaser(*call.pool.backing, call.request.api, call.where.context),
        call_(call),
        least_(pool::Pool::slab_bytes_for(call.request.upper_bound)),
        expected_(expected),
        merged_(merged) {}

  std::vector<pool::Slab> grow(const pool::GrowthWish &released) noexcept override try {
    const RelaxedCapture relaxed;
    // If a slab stayed, or the driver refused one, takes no more than what went back.
    const std::uint64_t most =
        released.bytes == expected_ && !refused() ? merged_ : std::min(released.bytes, this->bytes);
    for (std::uint64_t bytes = most; bytes >= least_; bytes = whole_units(nine_tenths(bytes))) {
      Taken taken = backing_.take(call_, {bytes, ledger::Effort::kImmediate, "merge"});
      if (taken.outcome == TakeOutcome::taken || taken.outcome == TakeOutcome::failed) {
        return std::move(taken.pieces);
      }
    }
    return {};
  } catch (...) {  // no memory of the host: the pool grows for the request
    return {};
  }

 private:
  const PoolCall &call_;
  const std::uint64_t least_;
  const std::uint64_t expected_;
  const std::uint64_t merged_;
};

}  // namespace

void SlabMerger::prepare(const PoolCall &call) {
  const std::uint64_t requested = call.request.upper_bound;
  if (!call.device.bounds.is_of_few(requested) || !fences_.by_events() || requested > pool::SharedPool::kMostBytes) {
    return;
  }
  const std::uint64_t bytes = pool::Pool::slab_bytes_for(std::max<std::uint64_t>(1, requested));
  const PoolBounds &bounds = call.device.bounds;
  struct Possible {
    std::uint64_t free = 0;
    std::uint64_t merged = 0;
  };
  const auto possible = [&]() -> Possible {
    const pool::FreePieces free = pool::free_slabs(call.pool.blocks, bytes);
    // A single slab that was preallocated with less than the limit keeps its size.
    const bool as_planned = bounds.plan.bytes > 0 && bounds.plan.bytes < whole_units(bounds.most_bytes());
    if (free.count == 1 && as_planned) {
      return {};
    }
    std::uint64_t rest = free.count > 0 ? bounds.rest_of_limit() : 0;
    if (rest > 0) {
      rest = std::min(rest, bounds.free_beyond_headroom());
    }
    return {free.bytes, pool::merged_bytes(free, rest, bytes)};
  };
  const pool::Statistics held = call.pool.blocks.statistics();
  // Placed now, the block would lie next to what the program has freed.
  const bool empty = held.used_bytes == 0 && held.retired_bytes > 0 && held.largest_hole >= bytes;
  const bool in_slabs = !call.pool.backing->gives_parts();  // whose borders no block crosses
  if (!empty && (!in_slabs || possible().merged == 0)) {
    return;
  }
  clean(call);
  if (!in_slabs) {
    return;
  }
  const Possible now = possible();
  if (call.device.quarantine.blocks() == 0 && now.merged != 0 && fences_.is_idle(call.device.device)) {
    merge(call, now.free, now.merged);
  }
}

void SlabMerger::merge(const PoolCall &call, std::uint64_t expected, std::uint64_t merged) {
  ledger::Transit transit(call.device.account.transits());
  transit.hold();
  MergingUpstream upstream(call, expected, merged);
  held::note(Growth::give_up, &call.pool.blocks);
  const bool done = call.pool.blocks.merge(upstream);
  (void)held::forget(Growth::give_up, &call.pool.blocks);
  if (done) {
    journal_.record(events::Trim{call.device.device, call.request.api, upstream.slabs, upstream.bytes});
  }
}

// Never waits long, because the driver's allocation does not wait.
void SlabMerger::clean(const PoolCall &call) {
  call.device.quarantine.collect(Quarantine::Sealing::always);
  if (call.device.quarantine.blocks() == 0) {
    return;
  }
  const std::uint64_t now = now_ns();
  std::atomic<std::uint64_t> &waited_ns = waited_ns_[call.device.device];
  std::uint64_t waited = waited_ns.load(std::memory_order_relaxed);
  const bool longer = now - waited > kWaitsApart * kBrieflyNs && waited_ns.compare_exchange_strong(waited, now);
  call.device.drain_briefly(call.request.api, longer ? kBrieflyNs : kFenceNs);
}

}  // namespace ration::policy
