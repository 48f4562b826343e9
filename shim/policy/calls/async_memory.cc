#include "policy/calls/async_memory.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/saturating.h"
#include "base/wait.h"
#include "policy/calls/call_parts.h"
#include "pool/merged_bytes.h"

namespace ration::policy {
namespace {

using driver::real;

// If at most this many blocks of a size fit under the limit, each is worth a fence of its own, and must not lose the
// rest of a step.
constexpr std::uint64_t kFewAtMost = 64;
// A block smaller than this part of a step leaves no rest that matters.
constexpr std::uint64_t kSplintered = 64;
// The part of the limit that may lie in rests of steps, if it is less than one block.
constexpr std::uint64_t kInRests = 32;
// The driver may count freed blocks as this much more. If no more than that is in use, a look at the pool is worth its
// cost.
constexpr std::uint64_t kRoundedUp = 2U << 20U;

// Whether the rests of a pool's steps would cost one block in the end. A pool grows by whole steps, so this can be if
// few blocks of this size fill the limit nearly to the last byte.
bool loses_a_block(const CallParts &parts, int device, std::uint64_t bytes, std::uint64_t bound) {
  const std::uint64_t limit = parts.account(device).attainable();
  if (limit == UINT64_MAX || bytes == 0 || limit / bytes > kFewAtMost || limit % bytes > limit / kFewAtMost) {
    return false;
  }
  // The last step of a pool that is capped may be smaller.
  const std::uint64_t in_last =
      parts.async_pools.is_capped(device) ? limit % bound / StreamPools::whole_units(bytes) : 0;
  return limit / bound * (bound / StreamPools::whole_units(bytes)) + in_last < limit / bytes;
}

// What one request asks of the device's pool, and what it got.
// Design: design/modes.md#near-the-limit
class PoolRequest {
 public:
  PoolRequest(const CallParts &parts, AsyncHints &hints, const Request &request, const Contexts::Current &where,
              const StreamPools::PoolRef &pool, CUdeviceptr *address)
      : parts_(parts), hints_(hints), request_(request), where_(where), pool_(pool), address_(address) {}

  std::uint64_t bound() const { return bound_; }
  CUresult result() const { return result_; }
  // Tries to take a block from the pool. Waits for earlier frees only if they can serve the request, and for other
  // threads only if they may have crowded it out: for each thread that was under way when this one looked, however long
  // that thread does not run. A thread that reserved in vain waits for all of these, and tries a limited number of
  // times, because such threads could wait for one another.
  bool take_in_turn() {
    constexpr int kMostInVain = 20;
    ledger::Transits &transits = account_.transits();
    Waiter waiter;
    for (int in_vain = 0; in_vain < kMostInVain && !is_for_driver();) {
      const std::uint64_t seen = parts_.async_pools.returned(device_);
      const std::uint64_t ended = transits.ended() - reservations_;
      const Taken taken = take_once();
      const std::uint64_t turn = transits.turn();
      if (taken == Taken::over) {
        return true;
      }
      if (parts_.async_pools.returned(device_) != seen || parts_.async_pools.release_retained(device_) ||
          (could_serve_later() && parts_.async_pools.reclaim(request_.api, device_, seen))) {
        continue;
      }
      const auto another_ended = [&] { return transits.ended() - reservations_ != ended; };
      const auto may_look = [&] {
        return transits.have_ended(turn) || parts_.async_pools.returned(device_) != seen ||
               (taken == Taken::crowded_out && another_ended());
      };
      while (!may_look()) {
        waiter.pause();
      }
      if (parts_.async_pools.returned(device_) != seen) {
        continue;
      }
      if (!another_ended()) {
        return false;
      }
      in_vain += taken == Taken::no_room ? 1 : 0;  // another thread may have held the chunk, or was replacing it
      waiter.pause();
    }
    return false;
  }

 private:
  // A part of the limit that is reserved for a call that needs less: a thread that fails to reserve meanwhile waits for
  // the end of this reservation.
  class Reservation {
   public:
    explicit Reservation(PoolRequest &of) : of_(of), transit_(of.account_.transits()) {}
    ~Reservation() { of_.reservations_ += holds_ ? 1 : 0; }
    Reservation(const Reservation &) = delete;
    Reservation &operator=(const Reservation &) = delete;
    // Reserves what the pool may grow by; nullopt if that much is not left.
    std::optional<StreamPools::Call> step(ledger::Effort effort) {
      return hold(of_.parts_.stream_pools.reserve(*of_.pool_, of_.bound_, effort));
    }
    // Reserves all that its cap leaves the pool; nullopt if that much is not left, because other memory is charged.
    std::optional<StreamPools::Call> to_cap() { return hold(of_.parts_.stream_pools.reserve_to_cap(*of_.pool_)); }
    void trim_by(std::uint64_t bytes) {
      if (of_.parts_.stream_pools.trim_by(of_.request_.api, *of_.pool_, bytes)) {
        hold();
      }
    }

   private:
    std::optional<StreamPools::Call> hold(const std::optional<StreamPools::Call> &call) {
      if (call) {
        hold();
      }
      return call;
    }
    void hold() {
      holds_ = true;
      transit_.hold();
    }

    PoolRequest &of_;
    ledger::Transit transit_;
    bool holds_ = false;
  };
  // How one attempt to take a block from the pool ended.
  enum class Taken {
    over,         // `result_` is the answer
    no_room,      // the pool has no room for it
    crowded_out,  // not enough is left to try; other threads may have reserved it
  };

  // The idle bytes in pieces too small for the request, as far as is known.
  std::uint64_t splinters(std::uint64_t idle) const {
    const bool of_size = bytes_ >= hints_.splintered_for.load(std::memory_order_relaxed);
    return of_size ? std::min(idle, hints_.splinters.load(std::memory_order_relaxed)) : 0;
  }
  // Called after the pool has served the request. If the pool grew, nothing that was idle could serve it.
  void note_splinters() {
    if (!large_ || parts_.async_pools.idle_bytes(device_) < idle_) {
      return;
    }
    hints_.splinters.store(idle_ + bound_ % StreamPools::whole_units(bytes_), std::memory_order_relaxed);
    hints_.splintered_for.store(bytes_, std::memory_order_relaxed);
  }
  // Whether growth of the pool for this request would cost a block of this size, in rests that are no longer small. Not
  // in a program of many sizes: once less than a step is left, what is free in the pool cannot be had next to a block
  // of the driver's own.
  bool wastes_a_block(std::uint64_t available) const {
    const std::uint64_t limit = account_.attainable();
    if (!again_ || limit == UINT64_MAX || available < bound_) {
      return false;
    }
    const std::uint64_t bytes = StreamPools::whole_units(bytes_);
    const std::uint64_t in_bound = bound_ / bytes;
    if (in_bound + (available - bound_) / bytes >= available / bytes) {
      return false;
    }
    const std::uint64_t rests = bound_ - in_bound * bytes + splinters(parts_.async_pools.idle_bytes(device_));
    return rests > limit / kInRests || rests >= bytes;
  }
  // While anything else is charged, what is free in the pool can be had only if there is room for the pool to grow by a
  // step.
  bool strands_a_step(std::uint64_t available) const {
    return available / 2 < bound_ && !parts_.stream_pools.can_reach_cap(*pool_);
  }
  // Whether the driver itself serves the request better than its pool does. The neighbours are read from shared memory,
  // so they are checked last.
  bool is_for_driver() const {
    const std::uint64_t available = account_.available();
    const std::uint64_t idle = parts_.async_pools.idle_bytes(device_);
    if (available < bytes_ || idle - (again_ ? splinters(idle) : 0) >= bytes_) {
      return false;
    }
    return loses_a_block(parts_, device_, bytes_, bound_) || strands_a_step(available) || wastes_a_block(available) ||
           parts_.pools.devices.on(device_).bounds.strands_others(bytes_);
  }
  bool could_serve_later() const {
    const std::uint64_t left = std::min(account_.available(), parts_.device_free(device_).value_or(UINT64_MAX));
    return parts_.async_pools.deferred_bytes(device_) > 0 && left + parts_.async_pools.free_bytes(device_) >= bytes_;
  }
  Taken take_and_enter(const StreamPools::Call &call) {
    CUdeviceptr obtained = 0;
    result_ = parts_.async_pools.take(device_, where_.context, bytes_, &obtained);
    parts_.stream_pools.finish_and_release(*pool_, call, result_ == CUDA_SUCCESS);
    if (result_ == CUDA_SUCCESS) {
      note_splinters();
      return enter(obtained);
    }
    parts_.stream_pools.reconcile(request_.api, *pool_);  // releases what others left charged for this call
    return result_ == CUDA_ERROR_OUT_OF_MEMORY ? Taken::no_room : Taken::over;
  }
  Taken enter(CUdeviceptr obtained) {
    const auto undo = [&](CUdeviceptr taken) { return parts_.async_pools.put_back(where_.context, taken); };
    result_ = parts_.admission.enter_pooled(pool_, request_, where_, where_.context, bytes_, undo, obtained, address_);
    return Taken::over;
  }
  // Takes a block while all that the pool's cap leaves it is reserved, so that the pool cannot grow beyond the limit.
  // nullopt if that much is not left, because other memory is charged.
  std::optional<Taken> take_to_cap() {
    Reservation rest(*this);
    if (const std::optional<StreamPools::Call> call = rest.to_cap()) {
      return take_and_enter(*call);
    }
    return std::nullopt;
  }
  Taken take_near_limit() {
    std::uint64_t rest = account_.available();
    const std::uint64_t idle = parts_.async_pools.idle_bytes(device_);
    if ((idle >= bytes_ || rest >= bytes_) && parts_.async_pools.is_capped(device_)) {
      std::optional<Taken> taken = take_to_cap();
      if (!taken &&
          parts_.stream_pools.trim(request_.api, device_, pool_.get())) {  // what the program's own pools keep
        rest = account_.available();
        taken = take_to_cap();
      }
      if (taken) {
        return *taken;
      }
    }
    if (idle < bytes_ || rest >= bound_ || bound_ > account_.limit()) {
      return Taken::crowded_out;
    }
    Reservation reservation(*this);  // holds what is trimmed, too
    reservation.trim_by(bound_ - rest);
    if (account_.available() < bound_) {  // only a larger chunk is free
      reservation.trim_by(bound_);
    }
    if (is_for_driver()) {
      return Taken::no_room;
    }
    const std::optional<StreamPools::Call> call = reservation.step(ledger::Effort::kImmediate);
    return call ? take_and_enter(*call) : Taken::crowded_out;
  }
  Taken take_once() {
    {
      Reservation reservation(*this);
      if (const std::optional<StreamPools::Call> call = reservation.step(ledger::Effort::kReclaimFromDead)) {
        return take_and_enter(*call);
      }
    }
    if (const CUdeviceptr retained = parts_.async_pools.take_retained(pool_, bytes_); retained != 0) {
      return enter(retained);
    }
    return take_near_limit();
  }

  const CallParts &parts_;
  AsyncHints &hints_;
  const Request &request_;
  const Contexts::Current &where_;
  const StreamPools::PoolRef &pool_;
  CUdeviceptr *const address_;
  const int device_ = where_.device;
  ledger::Account &account_ = parts_.account(device_);
  const std::uint64_t bytes_ = request_.upper_bound;
  const std::uint64_t bound_ = parts_.stream_pools.upper_bound(*pool_, bytes_);  // the most that the pool may grow by
  const bool large_ = bytes_ >= bound_ / kSplintered;  // a part of a step that leaves a rest worth counting
  const std::uint64_t idle_ = large_ ? parts_.async_pools.idle_bytes(device_) : 0;  // in the pool before the call
  const bool again_ = large_ && hints_.latest.exchange(bytes_) == bytes_;  // the latest large request was of this size
  std::uint64_t reservations_ = 0;
  CUresult result_ = CUDA_SUCCESS;
};

// Makes the pool reserve `bytes`. OUT_OF_MEMORY also if the limit does not have that much left.
CUresult extend(const CallParts &parts, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                std::uint64_t bytes) {
  const std::uint64_t bound = parts.stream_pools.upper_bound(*pool, bytes);
  std::optional<StreamPools::Call> call = parts.stream_pools.reserve(*pool, bound, ledger::Effort::kReclaimFromDead);
  if (!call && parts.async_pools.is_capped(where.device) && parts.account(where.device).available() >= bytes) {
    call = parts.stream_pools.reserve_to_cap(*pool);
  }
  if (!call) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = parts.async_pools.preallocate(where.device, where.context, bytes);
  parts.stream_pools.finish_and_release(*pool, *call, result == CUDA_SUCCESS);
  if (result == CUDA_SUCCESS) {
    parts.stream_pools.block_ended(*pool);
  }
  return result;
}

void charge_missing(const CallParts &parts, const char *api, StreamPools::Pool &pool) {
  if (parts.stream_pools.charge_missing(api, pool)) {
    parts.stream_pools.trim(api, pool.device);
  }
}

}  // namespace

CUresult AsyncMemory::allocate(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                               Act act, CUdeviceptr *address) {
  const int device = where.device;
  request.kind = events::Kind::pool;
  preallocate(request, where, pool);
  parts_.devices.heed(device);
  parts_.async_pools.poll_if_due(device);
  merge_chunks(request, where, pool);
  const std::uint64_t bytes = request.upper_bound;
  if (parts_.async_pools.idle_bytes(device) < bytes) {  // before the pool grows, or the driver serves it
    parts_.async_pools.release_needless(device);
    if (parts_.async_pools.deferred_bytes(device) >= bytes && parts_.async_pools.idle_bytes(device) < bytes) {
      parts_.async_pools.collect(device);
    }
  }
  PoolRequest ask(parts_, hints_[device], request, where, pool, address);
  if (parts_.account(device).available() < ask.bound()) {
    parts_.pending.poll(device);  // what else is charged keeps the pool from its cap
  }
  const bool first = parts_.pools.devices.on(device).bounds.is_of_few(bytes) &&
                     parts_.async_pools.idle_bytes(device) + parts_.async_pools.used_bytes(device) == 0;
  if (!parts_.pools.gifts.is_beyond_order(device, bytes) && ask.take_in_turn()) {
    if (first && ask.result() == CUDA_SUCCESS) {
      hints_[device].single_chunk.store(parts_.async_pools.idle_bytes(device) + parts_.async_pools.used_bytes(device),
                                        std::memory_order_relaxed);
    }
    return ask.result();
  }
  request.kind = events::Kind::device;
  return parts_.admission.obtain_in_units(parts_.books.blocks, request, where, act, undo_free, address);
}

// Gives back what the program has freed first. Apart from a rare brief wait, it waits only as long as a fence takes on
// an idle device.
bool AsyncMemory::has_no_block(const StreamPools::Pool &pool, const ContextRef &context) {
  const int device = pool.device;
  const auto freed = [&] {
    return parts_.async_pools.deferred_bytes(device) + parts_.async_pools.retained_bytes(device);
  };
  const auto may_be_empty = [&](std::uint64_t bytes) {
    return parts_.async_pools.used_bytes(device) <= bytes + bytes / 8 + kRoundedUp;
  };
  if (!may_be_empty(freed() + parts_.async_pools.ordered_bytes(device))) {
    return false;
  }
  parts_.async_pools.note_ordered(device, context);
  if (!may_be_empty(freed())) {
    return false;
  }
  parts_.async_pools.collect(device);
  const std::uint64_t start = now_ns();
  std::uint64_t waited = hints_[device].merge_waited_ns.load(std::memory_order_relaxed);
  const bool longer = parts_.async_pools.deferred_bytes(device) > 0 && start - waited > kWaitsApart * kBrieflyNs &&
                      hints_[device].merge_waited_ns.compare_exchange_strong(waited, start);
  const std::uint64_t most_ns = longer ? kBrieflyNs : kFenceNs;
  for (Backoff backoff; parts_.async_pools.deferred_bytes(device) > 0 && now_ns() - start < most_ns; backoff.sleep()) {
    parts_.async_pools.collect(device);
  }
  parts_.async_pools.release_retained(device);
  return parts_.async_pools.used_bytes(device) == 0;
}

void AsyncMemory::merge_chunks(const Request &request, const Contexts::Current &where,
                               const StreamPools::PoolRef &pool) {
  const int device = where.device;
  const std::uint64_t bytes = std::max<std::uint64_t>(1, request.upper_bound);
  if (!parts_.pools.devices.on(device).bounds.is_of_few(bytes) ||
      parts_.async_pools.free_bytes(device) + parts_.async_pools.ordered_bytes(device) == 0 ||
      !has_no_block(*pool, where.context)) {
    return;
  }
  const std::uint64_t held = parts_.async_pools.idle_bytes(device);
  const bool single = hints_[device].single_chunk.load(std::memory_order_relaxed) == held;
  const pool::FreePieces free{single ? 1U : 2U, held, single ? held / bytes : 0};
  const bool exact = loses_a_block(parts_, device, bytes, parts_.stream_pools.upper_bound(*pool, bytes));
  const auto left = [&] {
    return std::min(parts_.pools.devices.on(device).bounds.rest_of_limit(),
                    parts_.pools.devices.on(device).bounds.free_beyond_headroom());
  };
  const auto merged_with = [&](std::uint64_t kept_elsewhere) {
    const std::uint64_t rest = left() + kept_elsewhere;
    const std::uint64_t merged = pool::merged_bytes(free, rest, bytes);
    return exact && merged != 0 ? whole_units(held + rest) : merged;  // no rest is of whole steps
  };
  parts_.stream_pools.reconcile_all(request.api, device);  // the program's synchronise may have released something
  parts_.pending.poll(device);
  const std::uint64_t idle = parts_.stream_pools.idle(device);
  const std::uint64_t merged = merged_with(minus_or_zero(idle, held));
  if (held == 0) {
    return;
  }
  const std::uint64_t limit = parts_.account(device).limit();
  const std::uint64_t rest = left();
  const bool loses_one = (held + rest) / bytes > held / bytes + rest / bytes &&
                         !parts_.account(device).transits().any();  // otherwise the figures may be of two moments
  // Empty chunks are trimmed anyway when the pool must grow, so chunks of little of the limit, or of one block, do not
  // matter.
  if (merged == 0 || (!single && !loses_one && (held < limit / 2 || merged / bytes < 2))) {
    if (exact && (!single || free.blocks < limit / bytes)) {
      parts_.stream_pools.trim_by(request.api, *pool, held);  // the driver itself serves such blocks
    }
    return;
  }
  ledger::Transit transit(parts_.account(device).transits());
  transit.hold();
  if (merged == merged_with(0)) {
    parts_.stream_pools.trim_by(request.api, *pool, held);
  } else {
    parts_.stream_pools.trim(request.api, device);
  }
  CUresult result = extend(parts_, where, pool, merged);
  // If an exact chunk cannot be had, the driver itself serves such blocks.
  for (std::uint64_t less = merged; result == CUDA_ERROR_OUT_OF_MEMORY && !exact && less / 2 >= bytes;) {
    // Other threads may have taken blocks of that size meanwhile, so the chunk is cut to a whole number of them.
    less = std::min(nine_tenths(less), std::max(bytes, parts_.account(device).available())) / bytes * bytes;
    result = extend(parts_, where, pool, less);
  }
  charge_missing(parts_, request.api, *pool);
  hints_[device].single_chunk.store(parts_.async_pools.idle_bytes(device), std::memory_order_relaxed);
}

// Preallocates by one allocation and its free: the driver keeps what was freed, up to the release threshold.
void AsyncMemory::preallocate(const Request &request, const Contexts::Current &where,
                              const StreamPools::PoolRef &pool) {
  if (!parts_.async_pools.begin_preallocation(where.device)) {
    return;
  }
  parts_.pools.gifts.start_giving();
  ledger::Account &account = parts_.account(where.device);
  ledger::Transit transit(account.transits());
  transit.hold();
  const Preallocation plan = parts_.devices.preallocation_on(where.device, true);
  std::uint64_t bytes = plan.fair ? std::min(plan.bytes, account.fair_part(true)) : plan.bytes;
  if (!plan.exact) {
    const std::uint64_t free_now = parts_.device_free(where.device).value_or(UINT64_MAX);
    const std::uint64_t headroom = parts_.pools.devices.on(where.device).bounds.headroom(plan, free_now);
    bytes = std::min({bytes, account.available(), minus_or_zero(free_now, headroom)});
    const std::uint64_t bound = parts_.stream_pools.upper_bound(*pool, bytes);
    if (bound > std::min(account.available(), free_now)) {  // one step of the pool less fits
      bytes = bound - parts_.stream_pools.upper_bound(*pool, 1);
    }
  }
  CUresult result = CUDA_SUCCESS;
  while (bytes >= std::max<std::uint64_t>(1, plan.exact ? 0 : request.upper_bound)) {
    result = extend(parts_, where, pool, bytes);
    if (result == CUDA_SUCCESS || plan.exact || result != CUDA_ERROR_OUT_OF_MEMORY) {
      break;
    }
    bytes = nine_tenths(bytes);
  }
  if (plan.exact && result != CUDA_SUCCESS) {
    events::say("mode async: cannot preallocate " + parts_.devices.spoken(bytes) + " on device " +
                std::to_string(where.device) + " (error " + std::to_string(result) + ")");
  }
  charge_missing(parts_, request.api, *pool);
  hints_[where.device].single_chunk.store(parts_.async_pools.idle_bytes(where.device), std::memory_order_relaxed);
}

CUresult AsyncMemory::defer(CUdeviceptr address, const Block &block) {
  const CUresult state = parts_.async_pools.contexts().state_of_caller();
  if (state != CUDA_SUCCESS) {
    return state;
  }
  return parts_.async_pools.defer(block.device, {address, block.size, block.context}) ? CUDA_SUCCESS
                                                                                      : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult AsyncMemory::finish_free(const char *api, const Block &block) {
  const int device = block.device;
  if (parts_.options.synchronous_free) {
    return parts_.async_pools.drain(api, device);
  }
  const ledger::Account &account = parts_.account(device);
  // A large block gets its fence before any later work. Its free waits, as the driver's does, if the next allocation of
  // its size would have to wait.
  const bool large = block.size >= account.limit() / kFewAtMost;
  if (large) {
    parts_.async_pools.collect(device);
  } else {
    parts_.async_pools.poll_if_due(device);
  }
  const bool full = account.available() < block.size || (parts_.async_pools.was_full(device) &&
                                                         parts_.device_free(device).value_or(UINT64_MAX) < block.size);
  // The free also waits if half of the limit is freed. Otherwise an allocation would have to sooner or later, perhaps
  // under a lock that the device's work needs.
  const auto holds_much = [&] {
    return account.limit() != UINT64_MAX && parts_.async_pools.deferred_bytes(device) > account.limit() / 2;
  };
  if (holds_much()) {
    parts_.async_pools.collect(device);
  }
  // Free memory is rarely all in one piece.
  if ((full && parts_.async_pools.idle_bytes(device) / (large ? 2 : 1) < block.size) || holds_much()) {
    parts_.async_pools.wait_for_context(api, device, *block.context);
  }
  return CUDA_SUCCESS;
}

CUresult AsyncMemory::refuse_deferred() {
  parts_.journal.count_failed_free();
  const CUresult state = parts_.async_pools.contexts().state_of_caller();
  return state != CUDA_SUCCESS ? state : CUDA_ERROR_INVALID_VALUE;
}

std::optional<Block> AsyncMemory::block_at(CUdeviceptr address, CUdeviceptr *base) {
  CUdeviceptr start = 0;
  if (!parts_.options.async || !real.cuPointerGetAttribute.present() ||
      real.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  std::optional<Block> block = parts_.books.blocks.find(start);
  if (base != nullptr) {
    *base = start;
  }
  return block && parts_.async_pools.owns(block->pool) ? block : std::nullopt;
}

}  // namespace ration::policy
