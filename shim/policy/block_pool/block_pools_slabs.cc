// Slabs: the part of BlockPools that takes them from the driver and returns them.
// Layer: policy/block_pool.
#include <algorithm>

#include "base/clock.h"
#include "base/wait.h"
#include "policy/block_pool/block_pools.h"
#include "policy/block_pool/slab_releaser.h"

namespace ration::policy {
namespace {

using driver::real;

// A pool that grows on demand leaves at most this in quarantine to save driver calls.
constexpr std::uint64_t kMostSlackOnDemand = 64U << 20U;

}  // namespace

// Reserves `bytes` and asks the driver for them.
BlockPools::Take BlockPools::obtain(std::uint64_t bytes, int device, DevicePoolState &state, ledger::Effort effort,
                                    ledger::Transit &transit, CUresult &error, FunctionRef<CUresult()> call) {
  ledger::Account &account = ledger_.account(device);
  const ledger::Change change(account.changes());
  const ledger::ReserveOutcome reserved = account.reserve(bytes, effort);
  if (reserved != ledger::ReserveOutcome::granted) {
    return reserved == ledger::ReserveOutcome::over_limit ? Take::over_limit : Take::over_group_limit;
  }
  transit.hold();
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    return Take::taken;
  }
  account.release(bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    state.full.store(true, std::memory_order_relaxed);
    return Take::device_full;
  }
  error = result;
  return Take::failed;
}

// The pools of a device hold more than before.
void BlockPools::slab_taken(DevicePoolState &state, int device, std::uint64_t bytes) {
  state.full.store(false, std::memory_order_relaxed);
  state.slab_bytes.fetch_add(bytes, std::memory_order_relaxed);
  slab_bytes_changed(state, device);
}

void BlockPools::slab_gone(int device, std::uint64_t bytes) noexcept {
  if (DevicePoolState *state = known_state(device)) {
    state->full.store(false, std::memory_order_relaxed);
    state->slab_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    slab_bytes_changed(*state, device);
  }
}

BlockPools::Take BlockPools::take_slab(std::uint64_t bytes, const char *why, const Contexts::Current &where,
                                       DevicePoolState &state, ledger::Effort effort, pool::Slab &slab,
                                       CUresult &error) {
  if (existing_pool(*where.context)->blocks.stitches()) {
    return take_granule(bytes, why, where, state, effort, slab, error);
  }
  ledger::Account &account = ledger_.account(where.device);
  ledger::Transit transit(account.transits());
  CUdeviceptr address = 0;
  const std::uint64_t start = journal_.logging() ? now_ns() : 0;
  const Take taken =
      obtain(bytes, where.device, state, effort, transit, error, [&] { return real.cuMemAlloc_v2(&address, bytes); });
  if (taken != Take::taken) {
    return taken;
  }
  try {
    if (!slabs_.insert(address, bytes, where.context)) {
      account.release(bytes);  // the slab went with its context
      error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
      return Take::failed;
    }
  } catch (...) {
    if (real.cuMemFree_v2(address) == CUDA_SUCCESS) {
      account.release(bytes);
    }
    throw;
  }
  slab = {address, bytes, last_slab_.fetch_add(1, std::memory_order_relaxed) + 1};
  journal_.record(events::SlabAlloc{address, bytes, where.device, where.context->number, slab.id, "cuMemAlloc_v2", why,
                                    start != 0 ? now_ns() - start : 0});
  slab_taken(state, where.device, bytes);
  account.request_publication();
  return Take::taken;
}

void BlockPools::slab_bytes_changed(DevicePoolState &state, int device) {
  const ledger::Account &account = ledger_.account(device);
  const bool takes_from_others = account.limit() == UINT64_MAX || account.group_available() != UINT64_MAX;
  state.quarantine.set_sizes(state.slab_bytes.load(std::memory_order_relaxed), slack_bytes(state, device),
                             most_bytes(device), takes_from_others);
}

std::uint64_t BlockPools::most_bytes(int device) {
  const Device *known = devices_.find(device);
  const std::uint64_t total = known != nullptr ? known->total.load(std::memory_order_relaxed) : 0;
  const std::uint64_t limit = ledger_.account(device).limit();
  return total == 0 ? limit : std::min(limit, total);
}

std::uint64_t BlockPools::slack_bytes(const DevicePoolState &state, int device) {
  const std::uint64_t slack = most_bytes(device) / 8;
  return state.plan.bytes > 0 ? slack : std::min(slack, kMostSlackOnDemand);
}

// Log, then release, then unmap, so that reuse is always logged later.
void BlockPools::forget_slab(const char *api, const Context &context, const pool::Slab &slab) noexcept {
  journal_.record(events::SlabFree{slab.address, slab.bytes, context.device, context.number, slab.id, api});
  ledger_.account(context.device).release(slab.bytes);
  slabs_.erase(slab.address, context);
  slab_gone(context.device, slab.bytes);
  publish(context.device);
}

bool BlockPools::return_slab(const char *api, const ContextRef &context, const pool::Slab &slab) noexcept {
  if (existing_pool(*context)->blocks.stitches()) {
    return_granule(api, context, slab.id, slab.bytes);
    return true;
  }
  for (Waiter waiter;;) {
    if (const Pin pin(*context); pin) {
      slabs_.begin_end(slab.address);  // a thread that ends the context waits for the pin first
      const ledger::Change change(ledger_.account(context->device).changes());
      const RelaxedCapture relaxed;
      const CurrentFor current(context->handle);
      if (!current || real.cuMemFree_v2(slab.address) != CUDA_SUCCESS) {
        slabs_.cancel_end(slab.address);
        return false;
      }
      forget_slab(api, *context, slab);
      return true;
    }
    if (const char *ended_by = context->ended_by.load(std::memory_order_acquire)) {
      forget_slab(ended_by, *context, slab);  // the slab went with its context, whose pool no longer held it
      return true;
    }
    waiter.pause();  // another thread's destroy decides whether the context goes
  }
}

bool BlockPools::is_worth_returning(const Room::Need &need, Room::Patience patience) {
  if (patience == Room::Patience::briefly) {
    const std::uint64_t held = returnable(need.device, need.asking);
    const std::uint64_t rest = really_free().value_or(UINT64_MAX);
    return held > 0 && (rest >= need.bytes || held >= need.bytes - rest);
  }
  const std::vector<ContextRef> contexts = pooled_on(need.device);
  return std::any_of(contexts.begin(), contexts.end(),
                     [](const ContextRef &context) { return existing_pool(*context)->blocks.has_wholly_free_slab(); });
}

// With what was freed clean, so that its slabs are wholly free. Bounded in time.
bool BlockPools::becomes_idle(const char *api, DevicePoolState &state, int device) {
  const std::uint64_t start = now_ns();
  Quarantine::Cleaned all;
  for (Backoff backoff;; backoff.sleep()) {
    const bool over = fences_.captures().is_run_here() || !fences_.by_events() || now_ns() - start > kIdlePatienceNs;
    const bool idle = fences_.is_idle(device);
    if (over || (idle && state.quarantine.blocks() == 0)) {
      if (all.waited) {
        record_wait(api, device, "poll", all, start);
      }
      return idle;
    }
    const Quarantine::Cleaned cleaned = state.quarantine.collect(Quarantine::Sealing::always);
    all.add(cleaned);
    all.error = cleaned.error;
    all.waited = true;
  }
}

bool BlockPools::give_back_slabs(const Room::Need &need, Room::Patience patience) noexcept try {
  DevicePoolState *state = known_state(need.device);
  if (state == nullptr) {
    return false;
  }
  clean(need.device);
  // What is clean of granules goes back at once; what is retired may wait for the device, as slabs do.
  bool granules = give_back_granules(need) > 0;
  const bool enough = patience == Room::Patience::none || ledger_.account(need.device).available() >= need.bytes;
  if ((granules && enough) || !is_worth_returning(need, patience)) {
    return granules;
  }
  const bool idle =
      fences_.by_events() &&
      (patience == Room::Patience::none ? fences_.is_idle(need.device) : becomes_idle(need.api, *state, need.device));
  if (!fences_.by_events()) {
    if (patience == Room::Patience::briefly) {
      state->quarantine.drain();  // such a driver does not say how far the device is
    }
  } else if (!idle) {
    return granules;
  }
  granules = give_back_granules(need) > 0 || granules;
  ledger::Transit transit(ledger_.account(need.device).transits());
  events::Trim trim{need.device, need.api, 0, 0};
  for (const ContextRef &context : pooled_on(need.device)) {
    // A slab in transit, or refused, is in neither list that the context's end goes through.
    ContextPool &pool = *existing_pool(*context);
    const ContextPool::InFlight in_flight(pool);
    SlabReleaser releaser(*this, need.api, context);
    pool.blocks.give_back(releaser, &pool == need.asking ? need.block_bytes : UINT64_MAX);
    trim.slabs += releaser.slabs;
    trim.bytes += releaser.bytes;
  }
  if (trim.slabs > 0) {
    transit.hold();
    journal_.record(trim);
  }
  return trim.slabs > 0 || granules;
} catch (...) {  // no memory of the host to list the pools
  return false;
}

// A pool without a whole free granule has nothing to give, and is not searched again before more of it is free.
void BlockPools::keep_to_threshold(const char *api, int device) noexcept try {
  DevicePoolState *state = known_state(device);
  if (state != nullptr && is_over_order(device)) {
    give_back_slabs({api, device, ledger_.account(device).excess()}, Room::Patience::none);
  }
  const std::uint64_t threshold = state != nullptr ? state->plan.release_threshold : UINT64_MAX;
  if (threshold == UINT64_MAX || !state->has_granules()) {
    return;
  }
  const std::uint64_t free_now = clean_bytes(device);
  const std::uint64_t kept = std::max(threshold, state->kept_bytes.load(std::memory_order_relaxed));
  if (free_now <= kept) {
    if (free_now <= threshold) {
      state->kept_bytes.store(0, std::memory_order_relaxed);
    }
    return;
  }
  const std::uint64_t released = give_back_granules({api, device, free_now - threshold});
  state->kept_bytes.store(free_now - std::min(free_now, released), std::memory_order_relaxed);
} catch (...) {  // no memory of the host to list the pools
}

void BlockPools::clean_to_threshold(const char *api, int device) noexcept {
  DevicePoolState *state = known_state(device);
  if (state != nullptr && state->plan.release_threshold != UINT64_MAX) {
    state->quarantine.collect(Quarantine::Sealing::always);
    keep_to_threshold(api, device);
  }
}

void BlockPools::keep_to_thresholds() noexcept {
  for (int device = 0; device < devices_end_.load(); ++device) {
    clean_to_threshold("idle", device);
  }
}

void BlockPools::after_synchronise(int device) noexcept {
  clean_to_threshold("cuCtxSynchronize", device);
  give_to_others("cuCtxSynchronize", device);
}

void BlockPools::give_to_others(const char *api, int device) noexcept {
  ledger::Account &account = ledger_.account(device);
  const std::uint64_t held = account.charged();
  // Below its own guarantee nobody else would gain; of that of a tree others of the tree would.
  const std::uint64_t wanted = std::min(account.newly_wanted(), held - std::min(held, account.own_guarantee()));
  if (wanted != 0 && room_.give_away(api, device, wanted)) {
    account.answered();
    if (DevicePoolState *state = known_state(device)) {
      state->gave_ns.store(now_ns(), std::memory_order_relaxed);
    }
  }
}

bool BlockPools::is_beyond_order(int device, std::uint64_t bytes) {
  const ledger::Account &account = ledger_.account(device);
  const std::uint64_t charged = account.charged();
  return is_over_order(device) && used(device) + bytes > charged - std::min(charged, account.excess());
}

void BlockPools::heed_orders(const char *api) noexcept {
  for (int device = 0; device < ledger::kMaxDevices; ++device) {
    devices_.heed(device);
    if (!is_over_order(device)) {
      continue;
    }
    if (DevicePoolState *state = known_state(device)) {
      context_pools_.close_all(device);
      state->quarantine.collect(Quarantine::Sealing::always);
    }
    room_.give_away(api, device, ledger_.account(device).excess());
    publish(device);
  }
}

void BlockPools::end_preallocation(void *state) noexcept {
  static_cast<DevicePoolState *>(state)->preallocation.store(DevicePoolState::done);
  wake_waiters();
}

// Only a device's first context preallocates, and only its own live blocks count for that.
void BlockPools::preallocate(const Request &request, const Contexts::Current &where, ContextPool &pool,
                             DevicePoolState &state) {
  Context *first = nullptr;
  state.first.compare_exchange_strong(first, where.context.get());
  if ((first != nullptr && first != where.context.get()) ||
      pool.blocks.statistics().used_bytes + request.upper_bound < state.plan.after) {
    return;
  }
  int due = DevicePoolState::due;
  if (state.preallocation.compare_exchange_strong(due, DevicePoolState::running)) {
    held::note(end_preallocation, &state);
    try {
      preallocate_now(request, where, pool, state);
    } catch (...) {  // no memory of the host: the pool grows on demand
    }
    if (held::forget(end_preallocation, &state)) {
      end_preallocation(&state);
    }
  }
  Waiter waiter;
  while (state.preallocation.load(std::memory_order_acquire) == DevicePoolState::running) {
    waiter.pause();  // another thread preallocates; its slab serves this request, too
  }
}

// Bounded in time: the device's work may itself wait for this call to return.
void BlockPools::drain_briefly(const char *api, int device, DevicePoolState &state, std::uint64_t most_ns) {
  if (state.quarantine.blocks() == 0 || !fences_.by_events()) {
    return;
  }
  const std::uint64_t start = now_ns();
  Quarantine::Cleaned all;
  for (Backoff backoff;;) {
    const Quarantine::Cleaned cleaned = state.quarantine.collect(Quarantine::Sealing::always);
    all.blocks += cleaned.blocks;
    all.bytes += cleaned.bytes;
    all.error = cleaned.error;
    if (state.quarantine.blocks() == 0 || cleaned.error != CUDA_SUCCESS || cleaned.capturing ||
        now_ns() - start > most_ns) {
      break;
    }
    all.waited = true;
    backoff.sleep();
  }
  if (all.waited) {
    record_wait(api, device, "poll", all, start);
  }
}

// Takes the plan's bytes less what is held already, or nine tenths of that again and again until the driver has so
// much. Where not even this request would fit, the pool grows for it as for any other.
void BlockPools::preallocate_now(const Request &request, const Contexts::Current &where, ContextPool &pool,
                                 DevicePoolState &state) {
  const Preallocation &plan = state.plan;
  ledger::Account &account = ledger_.account(where.device);
  if (account.available() < plan.bytes - std::min(plan.bytes, account.charged())) {
    account.reclaim_from_dead();
  }
  if (state.slab_bytes.load(std::memory_order_relaxed) > 0) {
    drain_briefly(request.api, where.device, state, kBrieflyNs);
  }
  // Free small slabs would only fragment the device, and what the driver's pools keep would be missing in one piece.
  // Granules do not fragment it.
  room_.give_back({request.api, where.device, 0, pool.blocks.stitches() ? &pool : nullptr}, Room::Patience::none);
  const RelaxedCapture relaxed;
  const std::uint64_t free_now = really_free().value_or(UINT64_MAX);
  const std::uint64_t least =
      std::max(pool::Pool::slab_bytes_for(std::min(request.upper_bound, pool::SharedPool::kMostBytes)),
               ContextPool::kFirstSlabBytes);
  const std::uint64_t most = plan.fair ? std::min(plan.bytes, account.fair_part(pool.blocks.stitches())) : plan.bytes;
  std::uint64_t bytes = std::min(
      {most - std::min(most, account.charged()), account.available(),
       free_now == UINT64_MAX ? free_now : free_now - std::min(free_now, headroom_of(plan, where.device, free_now))});
  if (pool.blocks.stitches()) {
    return bytes >= least ? preallocate_granules(request, where, pool, state, bytes) : void();
  }
  while (whole_units(bytes) >= least) {
    pool::Slab slab{};
    CUresult error = CUDA_SUCCESS;
    switch (take_slab(whole_units(bytes), "preallocate", where, state, ledger::Effort::kImmediate, slab, error)) {
      case Take::taken:
        if (pool.blocks.add_slab(slab) != pool::AddSlabOutcome::kAdded) {
          return_slab(request.api, where.context, slab);
        }
        return;
      case Take::failed:
        return;
      case Take::over_limit:
      case Take::device_full:
        bytes = nine_tenths(bytes);
        break;
      case Take::over_group_limit:  // other members took it first
        bytes = std::min(nine_tenths(bytes), account.available());
        break;
    }
  }
}

// Records what the driver destroyed with a context: block by block, then slab by slab.
class TeardownUpstream final : public pool::NoUpstream {
 public:
  TeardownUpstream(BlockPools &pools, const char *api, const Context &context)
      : pools_(pools), api_(api), context_(context) {}
  void shrink(const pool::Slab &slab) noexcept override { pools_.forget_slab(api_, context_, slab); }

 private:
  BlockPools &pools_;
  const char *const api_;
  const Context &context_;
};

void BlockPools::finish_end(const char *api, const ContextRef &context) noexcept {
  fences_.captures().forget(context);
  fences_.forget(context);
  ContextPool *pool = existing_pool(*context);
  DevicePoolState *state = known_state(context->device);
  if (pool == nullptr || state == nullptr) {
    return;
  }
  Waiter waiter;
  while (pool->in_flight.load() != 0) {
    waiter.pause();  // that call sees that the context is gone, or is writing its record
  }
  state->quarantine.forget(*pool);
  exports_.forget(*pool);
  pool::Block blocks[32];
  while (const std::size_t count = pool->blocks.live_blocks(0, blocks, std::size(blocks))) {
    for (std::size_t i = 0; i < count; ++i) {
      if (pool->blocks.free(blocks[i].address)) {
        journal_.record(events::Free{blocks[i].address, blocks[i].bytes, context->device, context->number, api, 0,
                                     events::Source::pool});
      }
    }
  }
  TeardownUpstream teardown(*this, api, *context);
  pool->blocks.give_back(teardown);
  end_granules(api, context, *pool);
  Context *gone = context.get();
  if (state->first.compare_exchange_strong(gone, nullptr)) {
    state->preallocation.store(state->plan.bytes > 0 ? DevicePoolState::due : DevicePoolState::done);
    context_pools_.close_all(context->device);  // the next context to allocate may have to preallocate
  }
}

}  // namespace ration::policy
