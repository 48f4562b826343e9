// Slabs that no block is in become one slab: the part of BlockPools that a driver's free makes unnecessary, because it
// leaves no borders between what is free.
// Layer: policy/block_pool.
#include <algorithm>

#include "base/clock.h"
#include "base/held.h"
#include "policy/block_pool/merged_bytes.h"
#include "policy/block_pool/miss_handler.h"
#include "policy/block_pool/slab_releaser.h"

namespace ration::policy {
namespace {

// The slabs without a live block.
FreePieces free_slabs(const pool::SharedPool &pool, std::uint64_t block_bytes) {
  FreePieces free;
  pool::Slab slab{};
  for (pool::Address from = 0; pool.slabs(from, &slab, 1) == 1; from = slab.address + 1) {
    pool::Block first{};
    if (pool.live_blocks(slab.address, &first, 1) == 0 || first.address >= slab.address + slab.bytes) {
      ++free.count;
      free.bytes += slab.bytes;
      free.blocks += slab.bytes / block_bytes;
    }
  }
  return free;
}

}  // namespace

class SlabMerger final : public SlabReleaser {
 public:
  SlabMerger(BlockPools &pools, const Request &request, const Contexts::Current &where,
             BlockPools::DevicePoolState &state, std::uint64_t expected, std::uint64_t merged)
      : SlabReleaser(pools, request.api, where.context),
        where_(where),
        state_(state),
        least_(pool::Pool::slab_bytes_for(request.upper_bound)),
        expected_(expected),
        merged_(merged) {}

  std::optional<pool::Slab> grow(std::uint64_t released) noexcept override try {
    const RelaxedCapture relaxed;
    // Where a slab stayed, or the driver refused one, no more than what went.
    const std::uint64_t most = released == expected_ && !refused() ? merged_ : std::min(released, this->bytes);
    for (std::uint64_t bytes = most; bytes >= least_; bytes = whole_units(nine_tenths(bytes))) {
      pool::Slab slab{};
      CUresult error = CUDA_SUCCESS;
      switch (pools_.take_slab(bytes, "merge", where_, state_, ledger::Effort::kImmediate, slab, error)) {
        case BlockPools::Take::taken:
          return slab;
        case BlockPools::Take::failed:
          return std::nullopt;
        case BlockPools::Take::over_limit:
        case BlockPools::Take::over_group_limit:
        case BlockPools::Take::device_full:
          break;
      }
    }
    return std::nullopt;
  } catch (...) {  // no memory of the host: the pool grows for the request
    return std::nullopt;
  }

 private:
  const Contexts::Current &where_;
  BlockPools::DevicePoolState &state_;
  const std::uint64_t least_;
  const std::uint64_t expected_;
  const std::uint64_t merged_;
};

bool BlockPools::has_rest(int device) const {
  const ledger::Account &account = ledger_.account(device);
  const std::uint64_t limit = account.limit();
  return limit != UINT64_MAX && account.charged() <= limit && limit - account.charged() >= pool::kUnitBytes;
}

std::uint64_t BlockPools::rest_of_limit(int device) {
  const ledger::Account &account = ledger_.account(device);
  return has_rest(device) && account.group_available() == UINT64_MAX ? account.available() : 0;
}

// A context takes what is used of the device and in nobody's books, shared out among this process's contexts and the
// processes that are there; never more than is plausible, because processes without Ration may hold it.
std::uint64_t BlockPools::headroom_of(const Preallocation &plan, int device, std::uint64_t free_bytes) {
  constexpr std::uint64_t kMostOfContext = std::uint64_t{640} << 20;
  const Device *known = devices_.find(device);
  const std::uint64_t total = known != nullptr ? known->total.load(std::memory_order_relaxed) : 0;
  if (!plan.leaves_context || total <= free_bytes) {
    return plan.headroom;
  }
  ledger::Account &account = ledger_.account(device);
  const std::uint64_t held = account.charged() + account.held_by_others();
  const std::uint64_t beside = total - free_bytes - std::min(total - free_bytes, held);
  const std::vector<ContextRef> live = contexts_.live();
  const auto own =
      std::count_if(live.begin(), live.end(), [&](const ContextRef &context) { return context->device == device; });
  const std::uint64_t contexts = account.neighbours() + static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(own, 1));
  return std::max(plan.headroom, std::min(beside / contexts, kMostOfContext));
}

std::uint64_t BlockPools::free_beyond_headroom(int device) {
  const std::uint64_t free_bytes = really_free().value_or(UINT64_MAX);
  return free_bytes - std::min(free_bytes, headroom_of(state_of(device).plan, device, free_bytes));
}

void BlockPools::merge_slabs(const Request &request, const Contexts::Current &where, ContextPool &pool,
                             DevicePoolState &state) {
  if (!is_of_few(where.device, request.upper_bound) || !fences_.by_events() ||
      request.upper_bound > pool::SharedPool::kMostBytes) {
    return;
  }
  const std::uint64_t bytes = pool::Pool::slab_bytes_for(std::max<std::uint64_t>(1, request.upper_bound));
  struct Wanted {
    std::uint64_t free = 0;
    std::uint64_t merged = 0;
  };
  const auto wanted = [&]() -> Wanted {
    const FreePieces free = free_slabs(pool.blocks, bytes);
    // One that was preallocated with less than the limit stays as large as that.
    const bool as_planned = state.plan.bytes > 0 && state.plan.bytes < whole_units(most_bytes(where.device));
    if (free.count == 1 && as_planned) {
      return {};
    }
    std::uint64_t rest = free.count > 0 ? rest_of_limit(where.device) : 0;
    if (rest > 0) {
      rest = std::min(rest, free_beyond_headroom(where.device));
    }
    return {free.bytes, merged_bytes(free, rest, bytes)};
  };
  const pool::Statistics held = pool.blocks.statistics();
  // Placed now, it would lie beside what the program has freed.
  const bool empty = held.used_bytes == 0 && held.retired_bytes > 0 && held.largest_hole >= bytes;
  const bool stitches = pool.blocks.stitches();  // then slabs are no borders
  if (!empty && (stitches || wanted().merged == 0)) {
    return;
  }
  clean_for_merge(request.api, where.device, state);
  if (stitches) {
    return;
  }
  const Wanted now = wanted();
  if (state.quarantine.blocks() > 0 || now.merged == 0 || !fences_.is_idle(where.device)) {
    return;
  }
  ledger::Transit transit(ledger_.account(where.device).transits());
  transit.hold();
  SlabMerger merger(*this, request, where, state, now.free, now.merged);
  held::note(MissHandler::give_up_growth, &pool.blocks);
  const bool done = pool.blocks.merge(merger);
  (void)held::forget(MissHandler::give_up_growth, &pool.blocks);
  if (done) {
    journal_.record(events::Trim{where.device, request.api, merger.slabs, merger.bytes});
  }
}

// Never long, as the driver's allocation does not wait.
void BlockPools::clean_for_merge(const char *api, int device, DevicePoolState &state) {
  state.quarantine.collect(Quarantine::Sealing::always);
  if (state.quarantine.blocks() == 0) {
    return;
  }
  const std::uint64_t now = now_ns();
  std::uint64_t waited = state.merge_waited_ns.load(std::memory_order_relaxed);
  const bool longer =
      now - waited > kWaitsApart * kBrieflyNs && state.merge_waited_ns.compare_exchange_strong(waited, now);
  drain_briefly(api, device, state, longer ? kBrieflyNs : kFenceNs);
}

}  // namespace ration::policy
