#include "policy/block_pool/miss_handler.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/held.h"
#include "base/wait.h"
#include "policy/devices/returning_memory.h"

namespace ration::policy {
namespace {

constexpr std::uint64_t kSlabStep = ContextPool::kFirstSlabBytes;
// A slab for blocks of one size has room for this many bytes of them, and loses part of its last unit.
constexpr std::uint64_t kLeastOfOneSize = 32U << 20U;

constexpr std::uint64_t kGaveLatelyNs = 10'000'000;

constexpr std::uint64_t whole_slab(std::uint64_t bytes) {
  return (bytes + kSlabStep - 1) / kSlabStep * kSlabStep;
}

// Where fewer blocks of one size fit under the limit, each slab holds a whole number of them: the rest of each slab
// would be one block less in the end.
constexpr std::uint64_t kFewBlocks = 1024;
constexpr std::uint64_t kSmallPart = 32;    // of the limit, before preallocation
constexpr std::uint64_t kLargestPart = 16;  // of a limit: a slab with one small block in it cannot go back

}  // namespace

MissHandler::MissHandler(BlockPools &pools, const Request &request, const Contexts::Current &where, ContextPool &pool,
                         BlockPools::DevicePoolState &state)
    : pools_(pools),
      request_(request),
      where_(where),
      pool_(pool),
      state_(state),
      account_(pools.ledger_.account(where.device)),
      memory_(pools, request.api, where.context),
      lacking_(pool::Pool::slab_bytes_for(request.upper_bound)),
      reason_(account_.limit() == UINT64_MAX ? events::Reason::device : events::Reason::limit) {}

MissHandler::~MissHandler() {
  for (const pool::Slab &part : parts_) {
    shrink(part);
  }
}

void MissHandler::remember(const Quarantine::Cleaned &cleaned) {
  look_error_ = cleaned.error;  // a later look may have succeeded
}

// False where only a slab for this request alone would fit: there could soon be very many of those. And while another
// process is about to take what this one gave it: what is freed here can be cleaned instead.
bool MissHandler::may_grow() {
  const std::uint64_t gave_ns = state_.gave_ns.load(std::memory_order_relaxed);
  if (gave_ns != 0 && now_ns() - gave_ns < kGaveLatelyNs) {
    return false;
  }
  return account_.available() >=
         std::max(pool::Pool::slab_bytes_for(request_.upper_bound), ContextPool::kFirstSlabBytes);
}

bool MissHandler::collect() noexcept {
  pools_.reclaim_unshared();
  seen_retired_ = state_.quarantine.retired();
  seen_cleaned_ = state_.quarantine.reclaimed();
  const std::uint64_t held = state_.quarantine.bytes();
  const bool may_grow_now = may_grow();
  // Asking costs driver calls, so not at every block of a program that frees and allocates in turn.
  if (may_grow_now && held + request_.upper_bound <= pools_.slack_bytes(state_, where_.device)) {
    return false;
  }
  const Quarantine::Cleaned cleaned =
      state_.quarantine.collect(may_grow_now ? Quarantine::Sealing::worthwhile : Quarantine::Sealing::always);
  remember(cleaned);
  if (cleaned.blocks > 0) {
    return true;
  }
  return may_grow_now && held > state_.quarantine.cap_bytes() && cleaned.error == CUDA_SUCCESS && !cleaned.capturing &&
         drain_briefly();
}

// Enforces the cap on quarantined bytes. Bounded in time: the device's work may wait for this call to return.
bool MissHandler::drain_briefly() {
  if (drained_briefly_ || !pools_.fences_.by_events()) {
    return false;
  }
  drained_briefly_ = true;
  const std::uint64_t start = now_ns();
  Quarantine::Cleaned cleaned;
  Backoff backoff;
  while (cleaned.blocks == 0 && cleaned.error == CUDA_SUCCESS && now_ns() - start < kBrieflyNs) {
    backoff.sleep();
    cleaned = state_.quarantine.collect(Quarantine::Sealing::worthwhile);
  }
  remember(cleaned);
  pools_.record_wait(request_.api, where_.device, "poll", cleaned, start);
  return cleaned.blocks > 0;
}

std::uint64_t MissHandler::next_slab_bytes(std::uint64_t minimum_bytes) {
  const Preallocation &plan = state_.plan;
  const bool few = minimum_bytes + pool::kUnitBytes > pools_.most_bytes(where_.device) / kFewBlocks;
  const auto whole = [&](std::uint64_t bytes) {
    return few ? bytes / minimum_bytes * minimum_bytes : whole_slab(bytes);
  };
  // 2, 4, 8 MiB and so on: each as large as all slabs before it and one step more.
  std::uint64_t want = std::max(minimum_bytes, pool_.blocks.statistics().slab_bytes + kSlabStep);
  if (account_.limit() != UINT64_MAX) {
    want = std::min(want, std::max({minimum_bytes, account_.limit() / kLargestPart, kSlabStep}));
  }
  if (plan.bytes > 0 &&
      state_.preallocation.load(std::memory_order_acquire) == BlockPools::DevicePoolState::State::due &&
      state_.first.load(std::memory_order_relaxed) == pool_.context) {
    // The preallocated slab is still to come, and what stays free of this one is kept from it.
    // The first granules are no larger than a block needs, and go back one by one.
    const bool first = pool_.blocks.stitches() && pool_.blocks.statistics().slab_bytes < plan.after;
    const std::uint64_t small = first ? 0 : std::min(plan.after, pools_.most_bytes(where_.device) / kSmallPart);
    want = std::min(want, std::max({minimum_bytes, small, kSlabStep}));
  }
  std::uint64_t least = std::min(whole(std::max(kLeastOfOneSize / minimum_bytes, std::uint64_t{1}) * minimum_bytes),
                                 whole_units(account_.available()));
  // In a group, at most an eighth of what is left, in whole blocks of this request's size.
  if (const std::uint64_t eighth = account_.group_available() / 8; eighth < want) {
    want = std::max(minimum_bytes, eighth / minimum_bytes * minimum_bytes);
    least = 0;
  }
  if (pool_.blocks.stitches()) {
    want = std::min(want, std::max(minimum_bytes, pool_.layout.granule_bytes));
  }
  want = whole(want);
  std::uint64_t most = account_.available();
  if (const std::optional<std::uint64_t> free_bytes = really_free()) {
    most = std::min(most, *free_bytes - std::min(*free_bytes, plan.headroom));
    least = std::min(least, whole_units(*free_bytes));
  }
  // Never less than the driver takes for it in any case. A slab that must use the headroom holds several blocks: one of
  // 2 MiB would hold two blocks of 1 MiB.
  const std::uint64_t floor = whole(minimum_bytes);
  const std::uint64_t bytes = few ? whole(std::min(want, most)) : whole_units(std::min(want, most));
  return bytes >= floor ? bytes : std::max(floor, std::min(least, want));
}

// Tries slabs from `from_bytes` down to the smallest that will do.
std::optional<pool::Slab> MissHandler::take(std::uint64_t from_bytes, std::uint64_t minimum_bytes,
                                            ledger::Effort most) {
  for (std::uint64_t bytes = from_bytes;;) {
    pool::Slab slab{};
    const bool in_between = bytes < from_bytes && bytes > minimum_bytes;
    const auto effort = in_between ? ledger::Effort::kImmediate : most;
    switch (take_once(bytes, effort, slab)) {
      case BlockPools::Take::taken:
        if (slab.address % pool::kUnitBytes == 0 || slab.bytes >= minimum_bytes + pool::kUnitBytes) {
          return slab;
        }
        shrink(slab);  // a driver that aligns to less: the block would not fit after the rest of the first unit
        bytes = minimum_bytes += pool::kUnitBytes;
        continue;
      case BlockPools::Take::failed:
        return std::nullopt;
      case BlockPools::Take::over_limit:
        reason_ = events::Reason::limit;
        break;
      case BlockPools::Take::over_group_limit:
        reason_ = events::Reason::group;
        break;
      case BlockPools::Take::device_full:
        reason_ = events::Reason::device;
        break;
    }
    if (bytes <= minimum_bytes) {
      return std::nullopt;
    }
    bytes = std::max(minimum_bytes, whole_units(nine_tenths(bytes)));
  }
}

std::uint64_t MissHandler::room() noexcept {
  return state_.full.load(std::memory_order_relaxed) ? 0 : account_.available();
}

std::optional<pool::Slab> MissHandler::grow_by_part(std::uint64_t bytes, std::uint64_t most_bytes) noexcept {
  if (parts_.empty()) {
    part_bytes_ = most_bytes;
    const std::optional<pool::Slab> slab = grow(bytes);
    part_bytes_ = 0;
    return slab;
  }
  const pool::Slab next = parts_.back();
  parts_.pop_back();
  return next;
}

BlockPools::Take MissHandler::take_once(std::uint64_t bytes, ledger::Effort effort, pool::Slab &slab) {
  if (part_bytes_ == 0 || bytes <= part_bytes_) {
    return pools_.take_slab(bytes, "grow", where_, state_, effort, slab, grow_error_);
  }
  const BlockPools::Take taken =
      pools_.take_granules(bytes, part_bytes_, "grow", where_, state_, effort, parts_, grow_error_);
  if (taken == BlockPools::Take::taken) {
    std::reverse(parts_.begin(), parts_.end());
    slab = parts_.back();
    parts_.pop_back();
  }
  return taken;
}

std::optional<pool::Slab> MissHandler::grow(std::uint64_t minimum_bytes) noexcept {
  held::note(give_up_growth, &pool_.blocks);
  const std::optional<pool::Slab> slab = grow_now(minimum_bytes);
  (void)held::forget(give_up_growth, &pool_.blocks);
  return slab;
}

void MissHandler::give_up_growth(void *blocks) noexcept {
  static_cast<pool::SharedPool *>(blocks)->give_up_growth();
}

std::optional<pool::Slab> MissHandler::grow_now(std::uint64_t minimum_bytes) noexcept try {
  if (stays_out()) {
    return std::nullopt;
  }
  if (where_.context->ended_by.load(std::memory_order_acquire) != nullptr) {
    grow_error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return std::nullopt;
  }
  grow_error_ = CUDA_SUCCESS;
  lacking_ = minimum_bytes;
  const RelaxedCapture relaxed;
  const ledger::Transits &transits = account_.transits();
  std::uint64_t ended = transits.ended();
  std::optional<pool::Slab> slab = take(next_slab_bytes(minimum_bytes), minimum_bytes);
  if (!slab && grow_error_ == CUDA_SUCCESS) {
    if (make_room(minimum_bytes, Room::Patience::none)) {
      slab = take(minimum_bytes, minimum_bytes);
    }
  }
  // A slab that another thread reserved in vain or is returning may leave room for this request.
  bool changed = false;
  Waiter waiter;
  while (!slab && grow_error_ == CUDA_SUCCESS && reason_ != events::Reason::device &&
         transits.may_have_refused(ended)) {
    waiter.pause();
    ended = transits.ended();
    // A search for dead members by each thread would count as transit for the others.
    slab = take(minimum_bytes, minimum_bytes, ledger::Effort::kImmediate);
    changed = true;
  }
  if (!slab && changed && grow_error_ == CUDA_SUCCESS && reason_ != events::Reason::device) {
    slab = take(minimum_bytes, minimum_bytes);
  }
  ReturningMemory returning(pools_.devices_, where_.device, account_, minimum_bytes);
  if (!slab && reason_ == events::Reason::device && returning.expected()) {
    account_.want(minimum_bytes, ledger::Account::Of::device);  // others may give it sooner
  }
  while (!slab && grow_error_ == CUDA_SUCCESS && reason_ == events::Reason::device && returning.expected()) {
    returning.sleep();
    slab = take(minimum_bytes, minimum_bytes);
  }
  if (!slab && reason_ != events::Reason::device &&
      pools_.holds_elsewhere(where_.device, pool_.context, minimum_bytes)) {
    reason_ = events::Reason::pool_holds;
  }
  return slab;
} catch (...) {  // no memory of the host
  grow_error_ = CUDA_ERROR_OUT_OF_MEMORY;
  return std::nullopt;
}

void MissHandler::shrink(const pool::Slab &slab) noexcept {
  pools_.return_slab(request_.api, where_.context, slab);
}

bool MissHandler::make_room(std::uint64_t slab_bytes, Room::Patience patience) {
  const Room::Need need{request_.api, where_.device, slab_bytes, &pool_, request_.upper_bound, request_.begun_ns};
  return reason_ == events::Reason::device ? pools_.room_.give_back(need, patience)
                                           : pools_.room_.make_room(need, patience);
}

// Whether some stretch of a slab without a live block is long enough: if all that is retired were clean, the request
// could be served. In pieces, so that no other thread waits for the pool's lock.
bool MissHandler::has_stretch() {
  if (pool_.blocks.stitches()) {  // from wherever it is clean
    const pool::Statistics held = pool_.blocks.statistics();
    return held.free_bytes + held.retired_bytes >= request_.upper_bound;
  }
  pool::Slab slab{};
  for (pool::Address from = 0; pool_.blocks.slabs(from, &slab, 1) == 1; from = slab.address + 1) {
    const pool::Address end = slab.address + slab.bytes;
    std::array<pool::Block, 128> blocks;
    for (pool::Address free_from = slab.address; free_from < end;) {
      const std::size_t count = pool_.blocks.live_blocks(free_from, blocks.data(), blocks.size());
      for (std::size_t i = 0; i < count && free_from < end; ++i) {
        if (std::min(blocks[i].address, end) >= free_from + request_.upper_bound) {
          return true;
        }
        free_from = blocks[i].address + blocks[i].bytes;
      }
      if (count < blocks.size() && free_from + request_.upper_bound <= end) {
        return true;
      }
      if (count < blocks.size()) {
        break;
      }
    }
  }
  return false;
}

// Looked at only where the pool would grow: it reads shared memory.
bool MissHandler::stays_out() {
  if (!request_.in_holes_only || pool_.blocks.stitches()) {
    return false;
  }
  if (!stays_out_) {
    stays_out_ = pools_.strands_others(where_.device, request_.upper_bound);
  }
  return *stays_out_;
}

bool MissHandler::wait() noexcept {
  if (stays_out()) {
    return false;
  }
  if (has_stretch() && wait_for_clean()) {
    return true;
  }
  // Only slabs that go back to the driver can serve it, and they can only while the device is idle; or what others
  // have.
  return grow_error_ == CUDA_SUCCESS && retries_.allow() && make_room(lacking_, Room::Patience::briefly);
}

bool MissHandler::wait_for_clean() {
  for (Backoff backoff;;) {
    const std::uint64_t start = now_ns();
    const Quarantine::Cleaned cleaned = state_.quarantine.wait(seen_cleaned_);
    remember(cleaned);
    if (cleaned.waited) {
      pools_.record_wait(request_.api, where_.device, pools_.fences_.by_events() ? "event" : "synchronize", cleaned,
                         start);
    }
    if (cleaned.blocks > 0 || cleaned.others_cleaned) {
      return true;
    }
    capturing_ = cleaned.capturing;
    if (cleaned.error != CUDA_SUCCESS || !cleaned.capturing || !pools_.fences_.captures().run_elsewhere_only()) {
      return false;
    }
    if (capture_deadline_ns_ == 0) {
      capture_deadline_ns_ = start + kCapturePatienceNs;
    } else if (start > capture_deadline_ns_) {
      return false;
    }
    backoff.sleep();
  }
}

bool MissHandler::overtaken() const {
  if (error() != CUDA_SUCCESS || capturing_ || state_.quarantine.retired() == seen_retired_) {
    return false;
  }
  const pool::Statistics now = pool_.blocks.statistics();
  return now.free_bytes + now.retired_bytes >= request_.upper_bound;
}

}  // namespace ration::policy
