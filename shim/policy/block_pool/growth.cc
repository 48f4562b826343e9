#include "policy/block_pool/growth.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/held.h"
#include "base/saturating.h"
#include "base/wait.h"
#include "events/diagnostics.h"
#include "policy/block_pool/movement.h"
#include "policy/contexts/any_context.h"
#include "policy/devices/returning_memory.h"

namespace ration::policy {
namespace {

void explain_growth(const Growth &growth, const PoolCall &call, const pool::GrowthWish &wish,
                    const std::vector<pool::Slab> &pieces) noexcept {
  if (!events::shows(events::Level::debug)) {
    return;
  }
  std::uint64_t bytes = 0;
  for (const pool::Slab &piece : pieces) {
    bytes += piece.bytes;
  }
  if (bytes != 0) {
    events::explain(events::Level::debug, "device ", call.device.device, ": the pool of context ",
                    call.where.context->number, " grows by ", bytes, " bytes in ", pieces.size(), " pieces for ",
                    wish.bytes);
  } else {
    const char *why = growth.error() != CUDA_SUCCESS ? "the driver fails"
                      : wish.at_once                 ? "not without a wait"
                                                     : events::name_of(growth.reason());
    events::explain(events::Level::debug, "device ", call.device.device, ": the pool of context ",
                    call.where.context->number, " does not grow by ", wish.bytes, " bytes: ", why);
  }
}

}  // namespace

Growth::Growth(const GrowthParts &parts, const PoolCall &call)
    : parts_(parts),
      call_(call),
      cleaning_(parts.fences, call),
      lacking_(pool::Pool::slab_bytes_for(call.request.upper_bound)),
      reason_(call.device.account.limit() == UINT64_MAX ? events::Reason::device : events::Reason::limit) {}

// The pool may not grow if only a slab for this request alone would fit: there could soon be very many such slabs. Nor
// may it grow while another process is about to take what this one gave: what is freed here can be cleaned instead.
bool Growth::collect() noexcept {
  parts_.devices.heed(call_.device.device);  // not at a hit, which reads no shared memory
  parts_.sharing.reclaim_unshared();
  const std::uint64_t least = std::max(pool::Pool::slab_bytes_for(call_.request.upper_bound), kFirstSlabBytes);
  return cleaning_.collect(!parts_.gifts.gave_lately(call_.device.device) && call_.device.account.available() >= least);
}

std::uint64_t Growth::next_bytes(std::uint64_t minimum_bytes) const {
  const DevicePool &device = call_.device;
  const Preallocation &plan = device.bounds.plan;
  pool::GrowthState state;
  state.minimum = minimum_bytes;
  state.held = call_.pool.blocks.statistics().slab_bytes;
  state.most = device.bounds.most_bytes();
  state.limit = device.account.limit();
  state.available = device.account.available();
  state.group_available = device.account.group_available();
  state.free = device_free(parts_.contexts, device.device);
  state.headroom = plan.headroom;
  if (plan.bytes > 0 && device.turn.is_owed_to(call_.pool.context)) {
    state.owed_after = plan.after;
  }
  if (call_.pool.backing->gives_parts()) {
    state.granule_bytes = call_.pool.layout.granule_bytes;
  }
  return pool::next_growth(state);
}

// Tries `bytes`, then less, down to the least that will do.
Growth::Pieces Growth::take(std::uint64_t bytes, const pool::GrowthWish &wish, ledger::Effort most) {
  std::uint64_t least = wish.bytes;
  for (const std::uint64_t from = bytes;;) {
    const bool in_between = bytes < from && bytes > least;
    const ledger::Effort effort = in_between ? ledger::Effort::kImmediate : most;
    Taken taken = call_.pool.backing->take(call_, {bytes, effort, "grow", wish.piece_bytes});
    switch (taken.outcome) {
      case TakeOutcome::taken: {
        const pool::Slab first = taken.pieces.front();
        if (first.address % pool::kUnitBytes == 0 || first.bytes >= least + pool::kUnitBytes) {
          return std::move(taken.pieces);
        }
        shrink(first);  // aligned to less than a unit: the block would not fit after the rest of the first unit
        bytes = least += pool::kUnitBytes;
        continue;
      }
      case TakeOutcome::failed:
        grow_error_ = taken.error;
        return {};
      case TakeOutcome::over_limit:
        reason_ = events::Reason::limit;
        break;
      case TakeOutcome::over_group_limit:
        reason_ = events::Reason::group;
        break;
      case TakeOutcome::device_full:
        reason_ = events::Reason::device;
        break;
    }
    if (bytes <= least) {
      return {};
    }
    bytes = std::max(least, whole_units(nine_tenths(bytes)));
  }
}

Growth::Pieces Growth::grow(const pool::GrowthWish &wish) noexcept try {
  if (stays_out()) {
    return {};
  }
  held::note(give_up, &call_.pool.blocks);
  Pieces pieces = grow_now(wish);
  (void)held::forget(give_up, &call_.pool.blocks);
  explain_growth(*this, call_, wish, pieces);
  return pieces;
} catch (...) {  // no memory of the host
  (void)held::forget(give_up, &call_.pool.blocks);
  grow_error_ = CUDA_ERROR_OUT_OF_MEMORY;
  return {};
}

void Growth::give_up(void *blocks) noexcept {
  static_cast<pool::SharedPool *>(blocks)->give_up_growth();
}

Growth::Pieces Growth::grow_now(const pool::GrowthWish &wish) {
  ledger::Account &account = call_.device.account;
  if (wish.at_once && (call_.device.is_full() || account.available() < wish.bytes)) {
    return {};
  }
  if (call_.where.context->ended_by.load(std::memory_order_acquire) != nullptr) {
    grow_error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return {};
  }
  grow_error_ = CUDA_SUCCESS;
  lacking_ = wish.bytes;
  const RelaxedCapture relaxed;
  const std::uint64_t ended = account.transits().ended();
  Pieces pieces = take(next_bytes(wish.bytes), wish, ledger::Effort::kReclaimFromDead);
  if (pieces.empty() && grow_error_ == CUDA_SUCCESS && make_room(wish.bytes, Room::Patience::none)) {
    pieces = take(wish.bytes, wish, ledger::Effort::kReclaimFromDead);
  }
  if (pieces.empty() && grow_error_ == CUDA_SUCCESS) {
    pieces = wait_for_others(wish, ended);
  }
  if (pieces.empty() && reason_ != events::Reason::device &&
      call_.device.holds_elsewhere(call_.pool.context, wish.bytes)) {
    reason_ = events::Reason::pool_holds;
  }
  return pieces;
}

// Waits for memory that another thread reserved in vain or is returning, and for that of a process that has ended.
// Either may leave room for this request.
Growth::Pieces Growth::wait_for_others(const pool::GrowthWish &wish, std::uint64_t ended) {
  ledger::Account &account = call_.device.account;
  const ledger::Transits &transits = account.transits();
  Pieces pieces;
  const auto refused_by = [&](bool device) {
    return pieces.empty() && grow_error_ == CUDA_SUCCESS && (reason_ == events::Reason::device) == device;
  };
  bool changed = false;
  for (Waiter waiter; refused_by(false) && transits.may_have_refused(ended); changed = true) {
    waiter.pause();
    ended = transits.ended();
    // kImmediate, because a search for dead members by each thread would count as transit for the others.
    pieces = take(wish.bytes, wish, ledger::Effort::kImmediate);
  }
  if (changed && refused_by(false)) {
    pieces = take(wish.bytes, wish, ledger::Effort::kReclaimFromDead);
  }
  ReturningMemory returning(parts_.devices, call_.device.device, account, wish.bytes);
  if (refused_by(true) && returning.expected()) {
    events::explain(events::Level::debug, "device ", call_.device.device, ": waits for ", wish.bytes,
                    " bytes of a process that ended: the driver has not taken them back yet");
    account.want(wish.bytes, ledger::Account::Of::device);  // others may give it sooner
  }
  while (refused_by(true) && returning.expected()) {
    returning.sleep();
    pieces = take(wish.bytes, wish, ledger::Effort::kReclaimFromDead);
  }
  return pieces;
}

void Growth::shrink(const pool::Slab &piece) noexcept {
  call_.pool.backing->give_back(call_.request.api, call_.where.context, piece);
}

pool::stitch::DeviceMemory *Growth::memory() noexcept try {
  if (memory_ == nullptr) {
    memory_ = call_.pool.backing->memory(call_.request.api, call_.where.context);
  }
  return memory_.get();
} catch (...) {  // no memory of the host
  return nullptr;
}

bool Growth::make_room(std::uint64_t bytes, Room::Patience patience) {
  const Room::Need need{call_.request.api, call_.device.device,       bytes,
                        &call_.pool,       call_.request.upper_bound, call_.request.begun_ns};
  return reason_ == events::Reason::device ? parts_.room.give_back(need, patience)
                                           : parts_.room.make_room(need, patience);
}

// Whether the request could be served if all retired blocks were clean. Slabs serve it by a stretch without a live
// block, or go back whole and are replaced; granules serve wherever they are. Either is completed by memory that was
// never taken. Asks the pool for a few blocks at a time, so that no other thread waits for its lock.
bool Growth::suffices_when_clean() const {
  pool::SharedPool &blocks = call_.pool.blocks;
  const std::uint64_t bytes = call_.request.upper_bound;
  const auto with_untaken = [&](std::uint64_t held) {
    return plus_or_most(untaken_bytes(parts_.contexts, call_.device), held);
  };
  if (call_.pool.backing->gives_parts()) {
    const pool::Statistics held = blocks.statistics();
    return with_untaken(held.free_bytes + held.retired_bytes) >= bytes;
  }
  std::uint64_t whole = 0;
  pool::Slab slab{};
  for (pool::Address from = 0; blocks.slabs(from, &slab, 1) == 1; from = slab.address + 1) {
    const pool::Address end = slab.address + slab.bytes;
    std::array<pool::Block, 128> live;
    bool is_whole = true;
    for (pool::Address free_from = slab.address; free_from < end;) {
      const std::size_t count = blocks.live_blocks(free_from, live.data(), live.size());
      for (std::size_t i = 0; i < count && free_from < end; ++i) {
        if (std::min(live[i].address, end) >= free_from + bytes) {
          return true;
        }
        is_whole = is_whole && live[i].address >= end;
        free_from = live[i].address + live[i].bytes;
      }
      if (count < live.size()) {
        if (free_from + bytes <= end) {
          return true;
        }
        break;
      }
    }
    whole += is_whole ? slab.bytes : 0;
  }
  return whole > 0 && with_untaken(whole) >= lacking_;
}

// Decided only if the pool would grow, because it reads shared memory.
bool Growth::stays_out() {
  if (!call_.request.in_holes_only || call_.pool.backing->gives_parts()) {
    return false;
  }
  if (!stays_out_) {
    stays_out_ = call_.device.bounds.strands_others(call_.request.upper_bound);
  }
  return *stays_out_;
}

bool Growth::wait() noexcept {
  if (stays_out()) {
    return false;
  }
  if (suffices_when_clean() && cleaning_.wait()) {
    return true;
  }
  // The request can now be served only by slabs that go back to the driver, which takes them back only while the device
  // is idle, or by what others hold.
  return grow_error_ == CUDA_SUCCESS && retries_.allow() && make_room(lacking_, Room::Patience::briefly);
}

}  // namespace ration::policy
