#include "policy/calls/async_memory.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/wait.h"
#include "events/diagnostics.h"
#include "policy/block_pool/merged_bytes.h"

namespace ration::policy {
namespace {

using driver::real;

// A block of which fewer fit under the limit is worth a fence of its own, and must not lose the rest of a step.
constexpr std::uint64_t kFewAtMost = 64;
// A smaller part of a step leaves no rest that matters.
constexpr std::uint64_t kSplintered = 64;
// Of the limit: so much may lie in rests of steps, if it is less than one block.
constexpr std::uint64_t kInRests = 32;
// What is freed may count as so much more to the driver: a look at it is then worth its cost.
constexpr std::uint64_t kRoundedUp = 2U << 20U;
}  // namespace

// A pool grows by whole steps. Where few blocks of this size would fill the limit, nearly to the last byte, the rests
// of all steps would be one block less in the end.
bool AsyncMemory::loses_a_block(int device, std::uint64_t bytes, std::uint64_t bound) {
  const std::uint64_t limit = ledger_.account(device).attainable();
  if (limit == UINT64_MAX || bytes == 0 || limit / bytes > kFewAtMost || limit % bytes > limit / kFewAtMost) {
    return false;
  }
  // The last step of a pool that is capped may be smaller.
  const std::uint64_t in_last = async_.is_capped(device) ? limit % bound / StreamPools::whole_units(bytes) : 0;
  return limit / bound * (bound / StreamPools::whole_units(bytes)) + in_last < limit / bytes;
}

// What is idle in pieces too small for the request, as far as is known.
std::uint64_t AsyncMemory::splinters(const Ask &ask, std::uint64_t idle) {
  const Splinters &known = splinters_[ask.where.device];
  const bool of_size = ask.bytes >= known.for_bytes.load(std::memory_order_relaxed);
  return of_size ? std::min(idle, known.bytes.load(std::memory_order_relaxed)) : 0;
}

// After the pool has served it: where it grew, nothing that was idle could serve it.
void AsyncMemory::note_splinters(const Ask &ask) {
  if (!ask.large || async_.idle_bytes(ask.where.device) < ask.idle) {
    return;
  }
  Splinters &known = splinters_[ask.where.device];
  known.bytes.store(ask.idle + ask.bound % StreamPools::whole_units(ask.bytes), std::memory_order_relaxed);
  known.for_bytes.store(ask.bytes, std::memory_order_relaxed);
}

// Whether fewer blocks of this size, by more than one, are to be had once the pool has grown for it. Not in a program
// of many sizes: beside a block of the driver's, what is free in the pool cannot be had once less than a step is left.
bool AsyncMemory::wastes_a_block(const Ask &ask, std::uint64_t available) {
  const int device = ask.where.device;
  const std::uint64_t limit = ledger_.account(device).attainable();
  if (!ask.again || limit == UINT64_MAX || available < ask.bound) {
    return false;
  }
  const std::uint64_t bytes = StreamPools::whole_units(ask.bytes);
  const std::uint64_t in_bound = ask.bound / bytes;
  if (in_bound + (available - ask.bound) / bytes >= available / bytes) {
    return false;
  }
  const std::uint64_t rests = ask.bound - in_bound * bytes + splinters(ask, async_.idle_bytes(device));
  return rests > limit / kInRests || rests >= bytes;
}

// While anything else is charged, what is free in the pool can be had only with a step's room for it to grow.
bool AsyncMemory::strands_a_step(const Ask &ask, std::uint64_t available) {
  return available / 2 < ask.bound && !stream_pools_.can_reach_cap(*ask.pool);
}

// What neighbours there are is in shared memory, so it is asked last.
bool AsyncMemory::is_for_driver(const Ask &ask) {
  const int device = ask.where.device;
  const std::uint64_t available = ledger_.account(device).available();
  const std::uint64_t idle = async_.idle_bytes(device);
  if (available < ask.bytes || idle - (ask.again ? splinters(ask, idle) : 0) >= ask.bytes) {
    return false;
  }
  return loses_a_block(device, ask.bytes, ask.bound) || strands_a_step(ask, available) ||
         wastes_a_block(ask, available) || pools_.devices.on(device).bounds.strands_others(ask.bytes);
}

bool AsyncMemory::could_serve_later(const Ask &ask) {
  const int device = ask.where.device;
  const std::uint64_t left =
      std::min(ledger_.account(device).available(), admission_.device_free(device).value_or(UINT64_MAX));
  return async_.deferred_bytes(device) > 0 && left + async_.free_bytes(device) >= ask.bytes;
}

AsyncMemory::Reservation::Reservation(AsyncMemory &memory, const Ask &ask)
    : pools_(memory.stream_pools_), ask_(ask), transit_(memory.ledger_.account(ask.where.device).transits()) {}

AsyncMemory::Reservation::~Reservation() {
  if (holds_) {
    ++*ask_.reservations;
  }
}

void AsyncMemory::Reservation::hold() {
  holds_ = true;
  transit_.hold();
}

std::optional<StreamPools::Call> AsyncMemory::Reservation::step(ledger::Effort effort) {
  const std::optional<StreamPools::Call> call = pools_.reserve(*ask_.pool, ask_.bound, effort);
  if (call) {
    hold();
  }
  return call;
}

std::optional<StreamPools::Call> AsyncMemory::Reservation::to_cap() {
  const std::optional<StreamPools::Call> call = pools_.reserve_to_cap(*ask_.pool);
  if (call) {
    hold();
  }
  return call;
}

void AsyncMemory::Reservation::trim_by(std::uint64_t bytes) {
  if (pools_.trim_by(ask_.request.api, *ask_.pool, bytes)) {
    hold();
  }
}

AsyncMemory::Taken AsyncMemory::take_and_enter(const Ask &ask, const StreamPools::Call &call, CUdeviceptr *address,
                                               CUresult &result) {
  CUdeviceptr obtained = 0;
  result = async_.take(ask.where.device, ask.where.context, ask.bytes, &obtained);
  stream_pools_.finish_and_release(*ask.pool, call, result == CUDA_SUCCESS);
  if (result == CUDA_SUCCESS) {
    note_splinters(ask);
    return enter(ask, obtained, address, result);
  }
  stream_pools_.reconcile(ask.request.api, *ask.pool);  // releases what others left charged for this call
  return result == CUDA_ERROR_OUT_OF_MEMORY ? Taken::no_room : Taken::over;
}

AsyncMemory::Taken AsyncMemory::enter(const Ask &ask, CUdeviceptr obtained, CUdeviceptr *address, CUresult &result) {
  const auto undo = [&](CUdeviceptr taken) { return async_.put_back(ask.where.context, taken); };
  result =
      admission_.enter_pooled(ask.pool, ask.request, ask.where, ask.where.context, ask.bytes, undo, obtained, address);
  return Taken::over;
}

// With all that its cap leaves it reserved, the pool cannot grow beyond the limit. nullopt: not so much is left,
// because other memory is charged.
std::optional<AsyncMemory::Taken> AsyncMemory::take_to_cap(const Ask &ask, CUdeviceptr *address, CUresult &result) {
  Reservation rest(*this, ask);
  if (const std::optional<StreamPools::Call> call = rest.to_cap()) {
    return take_and_enter(ask, *call, address, result);
  }
  return std::nullopt;
}

AsyncMemory::Taken AsyncMemory::take_near_limit(const Ask &ask, CUdeviceptr *address, CUresult &result) {
  const int device = ask.where.device;
  ledger::Account &account = ledger_.account(device);
  std::uint64_t rest = account.available();
  const std::uint64_t idle = async_.idle_bytes(device);
  if ((idle >= ask.bytes || rest >= ask.bytes) && async_.is_capped(device)) {
    std::optional<Taken> taken = take_to_cap(ask, address, result);
    if (!taken && stream_pools_.trim(ask.request.api, device, ask.pool.get())) {  // what the program's own pools keep
      rest = account.available();
      taken = take_to_cap(ask, address, result);
    }
    if (taken) {
      return *taken;
    }
  }
  if (idle < ask.bytes || rest >= ask.bound || ask.bound > account.limit()) {
    return Taken::crowded_out;
  }
  Reservation reservation(*this, ask);  // holds what is trimmed, too
  reservation.trim_by(ask.bound - rest);
  if (account.available() < ask.bound) {  // only a larger chunk is free
    reservation.trim_by(ask.bound);
  }
  if (is_for_driver(ask)) {
    return Taken::no_room;
  }
  const std::optional<StreamPools::Call> call = reservation.step(ledger::Effort::kImmediate);
  return call ? take_and_enter(ask, *call, address, result) : Taken::crowded_out;
}

AsyncMemory::Taken AsyncMemory::take_once(const Ask &ask, CUdeviceptr *address, CUresult &result) {
  {
    Reservation reservation(*this, ask);
    if (const std::optional<StreamPools::Call> call = reservation.step(ledger::Effort::kReclaimFromDead)) {
      return take_and_enter(ask, *call, address, result);
    }
  }
  if (const CUdeviceptr retained = async_.take_retained(ask.pool, ask.bytes); retained != 0) {
    return enter(ask, retained, address, result);
  }
  return take_near_limit(ask, address, result);
}

// Waits for what was freed before only where that can serve it, and for other threads only where they may have crowded
// it out: for each that was under way at this thread's look, however long that one is kept from running. Whoever had a
// reservation in vain waits for them all, and looks a limited number of times: such threads could wait for one another.
bool AsyncMemory::take_in_turn(const Ask &ask, CUdeviceptr *address, CUresult &result) {
  constexpr int kMostInVain = 20;
  const int device = ask.where.device;
  ledger::Transits &transits = ledger_.account(device).transits();
  Waiter waiter;
  for (int in_vain = 0; in_vain < kMostInVain && !is_for_driver(ask);) {
    const std::uint64_t seen = async_.returned(device);
    const std::uint64_t ended = transits.ended() - *ask.reservations;
    const Taken taken = take_once(ask, address, result);
    const std::uint64_t turn = transits.turn();
    if (taken == Taken::over) {
      return true;
    }
    if (async_.returned(device) != seen || async_.release_retained(device) ||
        (could_serve_later(ask) && async_.reclaim(ask.request.api, device, seen))) {
      continue;
    }
    const auto another_ended = [&] { return transits.ended() - *ask.reservations != ended; };
    const auto may_look = [&] {
      return transits.have_ended(turn) || async_.returned(device) != seen ||
             (taken == Taken::crowded_out && another_ended());
    };
    while (!may_look()) {
      waiter.pause();
    }
    if (async_.returned(device) != seen) {
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

CUresult AsyncMemory::allocate(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                               Act act, CUdeviceptr *address) {
  const int device = where.device;
  request.kind = events::Kind::pool;
  preallocate(request, where, pool);
  devices_.heed(device);
  async_.poll_if_due(device);
  merge_chunks(request, where, pool);
  const std::uint64_t bytes = request.upper_bound;
  if (async_.idle_bytes(device) < bytes) {  // before the pool grows, or the driver serves it
    async_.release_needless(device);
    if (async_.deferred_bytes(device) >= bytes && async_.idle_bytes(device) < bytes) {
      async_.collect(device);
    }
  }
  std::uint64_t reservations = 0;
  const std::uint64_t bound = stream_pools_.upper_bound(*pool, bytes);
  if (ledger_.account(device).available() < bound) {
    admission_.poll_pending(device);  // what else is charged keeps the pool from its cap
  }
  const bool large = bytes >= bound / kSplintered;
  const bool again = large && latest_[device].exchange(bytes) == bytes;
  const Ask ask{request, where, pool, bytes, bound, large ? async_.idle_bytes(device) : 0, large, again, &reservations};
  CUresult result = CUDA_SUCCESS;
  const bool first =
      pools_.devices.on(device).bounds.is_of_few(bytes) && async_.idle_bytes(device) + async_.used_bytes(device) == 0;
  if (!pools_.gifts.is_beyond_order(device, bytes) && take_in_turn(ask, address, result)) {
    if (first && result == CUDA_SUCCESS) {
      single_chunk_[device].store(async_.idle_bytes(device) + async_.used_bytes(device), std::memory_order_relaxed);
    }
    return result;
  }
  request.kind = events::Kind::device;
  return admission_.obtain_in_units(books_.blocks, request, where, act, undo_free, address);
}

CUresult AsyncMemory::extend(const Contexts::Current &where, const StreamPools::PoolRef &pool, std::uint64_t bytes) {
  const std::uint64_t bound = stream_pools_.upper_bound(*pool, bytes);
  std::optional<StreamPools::Call> call = stream_pools_.reserve(*pool, bound, ledger::Effort::kReclaimFromDead);
  if (!call && async_.is_capped(where.device) && ledger_.account(where.device).available() >= bytes) {
    call = stream_pools_.reserve_to_cap(*pool);
  }
  if (!call) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = async_.preallocate(where.device, where.context, bytes);
  stream_pools_.finish_and_release(*pool, *call, result == CUDA_SUCCESS);
  if (result == CUDA_SUCCESS) {
    stream_pools_.block_ended(*pool);
  }
  return result;
}

void AsyncMemory::charge_missing(const char *api, StreamPools::Pool &pool) {
  if (stream_pools_.charge_missing(api, pool)) {
    stream_pools_.trim(api, pool.device);
  }
}

// What the program has freed goes back first, without a wait for anything but a fence of an idle device.
bool AsyncMemory::has_no_block(const StreamPools::Pool &pool, const ContextRef &context) {
  const int device = pool.device;
  const auto freed = [&] { return async_.deferred_bytes(device) + async_.retained_bytes(device); };
  const auto may_be_empty = [&](std::uint64_t bytes) {
    return async_.used_bytes(device) <= bytes + bytes / 8 + kRoundedUp;
  };
  if (!may_be_empty(freed() + async_.ordered_bytes(device))) {
    return false;
  }
  async_.note_ordered(device, context);
  if (!may_be_empty(freed())) {
    return false;
  }
  async_.collect(device);
  const std::uint64_t start = now_ns();
  std::uint64_t waited = merge_waited_ns_[device].load(std::memory_order_relaxed);
  const bool longer = async_.deferred_bytes(device) > 0 && start - waited > kWaitsApart * kBrieflyNs &&
                      merge_waited_ns_[device].compare_exchange_strong(waited, start);
  const std::uint64_t most_ns = longer ? kBrieflyNs : kFenceNs;
  for (Backoff backoff; async_.deferred_bytes(device) > 0 && now_ns() - start < most_ns; backoff.sleep()) {
    async_.collect(device);
  }
  async_.release_retained(device);
  return async_.used_bytes(device) == 0;
}

void AsyncMemory::merge_chunks(const Request &request, const Contexts::Current &where,
                               const StreamPools::PoolRef &pool) {
  const int device = where.device;
  const std::uint64_t bytes = std::max<std::uint64_t>(1, request.upper_bound);
  if (!pools_.devices.on(device).bounds.is_of_few(bytes) ||
      async_.free_bytes(device) + async_.ordered_bytes(device) == 0 || !has_no_block(*pool, where.context)) {
    return;
  }
  const std::uint64_t held = async_.idle_bytes(device);
  const bool single = single_chunk_[device].load(std::memory_order_relaxed) == held;
  const FreePieces free{single ? 1U : 2U, held, single ? held / bytes : 0};
  const bool exact = loses_a_block(device, bytes, stream_pools_.upper_bound(*pool, bytes));
  const auto left = [&] {
    return std::min(pools_.devices.on(device).bounds.rest_of_limit(),
                    pools_.devices.on(device).bounds.free_beyond_headroom());
  };
  const auto merged_with = [&](std::uint64_t kept_elsewhere) {
    const std::uint64_t rest = left() + kept_elsewhere;
    const std::uint64_t merged = merged_bytes(free, rest, bytes);
    return exact && merged != 0 ? whole_units(held + rest) : merged;  // no rest is of whole steps
  };
  stream_pools_.reconcile_all(request.api, device);  // the program's synchronise may have released something
  admission_.poll_pending(device);
  const std::uint64_t idle = stream_pools_.idle(device);
  const std::uint64_t merged = merged_with(idle - std::min(idle, held));
  if (held == 0) {
    return;
  }
  const std::uint64_t limit = ledger_.account(device).limit();
  const std::uint64_t rest = left();
  const bool loses_one = (held + rest) / bytes > held / bytes + rest / bytes &&
                         !ledger_.account(device).transits().any();  // else the figures are of two moments
  // Chunks that hold nothing are trimmed where the pool must grow: little of the limit, or one block, is no matter.
  if (merged == 0 || (!single && !loses_one && (held < limit / 2 || merged / bytes < 2))) {
    if (exact && (!single || free.blocks < limit / bytes)) {
      stream_pools_.trim_by(request.api, *pool, held);  // the driver serves such blocks
    }
    return;
  }
  ledger::Transit transit(ledger_.account(device).transits());
  transit.hold();
  if (merged == merged_with(0)) {
    stream_pools_.trim_by(request.api, *pool, held);
  } else {
    stream_pools_.trim(request.api, device);
  }
  CUresult result = extend(where, pool, merged);
  // Where an exact chunk cannot be had the driver serves such blocks.
  for (std::uint64_t less = merged; result == CUDA_ERROR_OUT_OF_MEMORY && !exact && less / 2 >= bytes;) {
    // Other threads may have taken blocks of that size meanwhile: the rest of one would be lost.
    less = std::min(nine_tenths(less), std::max(bytes, ledger_.account(device).available())) / bytes * bytes;
    result = extend(where, pool, less);
  }
  charge_missing(request.api, *pool);
  single_chunk_[device].store(async_.idle_bytes(device), std::memory_order_relaxed);
}

// One allocation and its free. The driver keeps what was freed, up to the release threshold.
void AsyncMemory::preallocate(const Request &request, const Contexts::Current &where,
                              const StreamPools::PoolRef &pool) {
  if (!async_.begin_preallocation(where.device)) {
    return;
  }
  pools_.gifts.start_giving();
  ledger::Account &account = ledger_.account(where.device);
  ledger::Transit transit(account.transits());
  transit.hold();
  const Preallocation plan = devices_.async_preallocation_on(where.device);
  std::uint64_t bytes = plan.fair ? std::min(plan.bytes, account.fair_part(true)) : plan.bytes;
  if (!plan.exact) {
    const std::uint64_t free_now = admission_.device_free(where.device).value_or(UINT64_MAX);
    const std::uint64_t headroom = pools_.devices.on(where.device).bounds.headroom(plan, free_now);
    bytes = std::min({bytes, account.available(), free_now - std::min(free_now, headroom)});
    const std::uint64_t bound = stream_pools_.upper_bound(*pool, bytes);
    if (bound > std::min(account.available(), free_now)) {  // one step of the pool less fits
      bytes = bound - stream_pools_.upper_bound(*pool, 1);
    }
  }
  CUresult result = CUDA_SUCCESS;
  while (bytes >= std::max<std::uint64_t>(1, plan.exact ? 0 : request.upper_bound)) {
    result = extend(where, pool, bytes);
    if (result == CUDA_SUCCESS || plan.exact || result != CUDA_ERROR_OUT_OF_MEMORY) {
      break;
    }
    bytes = nine_tenths(bytes);
  }
  if (plan.exact && result != CUDA_SUCCESS) {
    events::say("mode async: device " + std::to_string(where.device) + ": " + std::to_string(bytes) +
                " bytes cannot be preallocated (error " + std::to_string(result) + ")");
  }
  charge_missing(request.api, *pool);
  single_chunk_[where.device].store(async_.idle_bytes(where.device), std::memory_order_relaxed);
}

CUresult AsyncMemory::defer(CUdeviceptr address, const Block &block) {
  const CUresult state = async_.contexts().state_of_caller();
  if (state != CUDA_SUCCESS) {
    return state;
  }
  return async_.defer(block.device, {address, block.size, block.context}) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult AsyncMemory::finish_free(const char *api, const Block &block) {
  const int device = block.device;
  if (synchronous_free_) {
    return async_.drain(api, device);
  }
  const ledger::Account &account = ledger_.account(device);
  // A large one has its fence before any later work. It waits as the driver's free does where the next allocation of
  // its size would have to.
  const bool large = block.size >= account.limit() / kFewAtMost;
  if (large) {
    async_.collect(device);
  } else {
    async_.poll_if_due(device);
  }
  const bool full = account.available() < block.size ||
                    (async_.was_full(device) && admission_.device_free(device).value_or(UINT64_MAX) < block.size);
  // An allocation would have to wait for half of the limit sooner or later, perhaps under a lock that the work needs.
  const auto holds_much = [&] {
    return account.limit() != UINT64_MAX && async_.deferred_bytes(device) > account.limit() / 2;
  };
  if (holds_much()) {
    async_.collect(device);
  }
  // What is free is rarely all in one.
  if ((full && async_.idle_bytes(device) / (large ? 2 : 1) < block.size) || holds_much()) {
    async_.wait_for_context(api, device, *block.context);
  }
  return CUDA_SUCCESS;
}

CUresult AsyncMemory::refuse_deferred() {
  journal_.count_failed_free();
  const CUresult state = async_.contexts().state_of_caller();
  return state != CUDA_SUCCESS ? state : CUDA_ERROR_INVALID_VALUE;
}

std::optional<Block> AsyncMemory::block_at(CUdeviceptr address, CUdeviceptr *base) {
  CUdeviceptr start = 0;
  if (!enabled_ || !real.cuPointerGetAttribute.present() ||
      real.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  std::optional<Block> block = books_.blocks.find(start);
  if (base != nullptr) {
    *base = start;
  }
  return block && owns(*block) ? block : std::nullopt;
}

}  // namespace ration::policy
