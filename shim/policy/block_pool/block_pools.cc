#include "policy/block_pool/block_pools.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/clock.h"
#include "policy/block_pool/miss_handler.h"

namespace ration::policy {
namespace {

using driver::real;

// How often a request looks again because other threads freed meanwhile; ends a request that no hole will ever fit.
constexpr int kMostTries = 100;
// A device's pools that can hold less have little to give.
constexpr std::uint64_t kWorthAThread = 64U << 20U;

// CUDA_SUCCESS where a free may go into `stream`, else the driver's error. A graph's free node must be given a graph's
// own allocation (cuda.h).
CUresult state_of_stream(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = capture_status(stream, status);
  if (result == CUDA_ERROR_NOT_SUPPORTED) {  // then capture is not supported either
    return CUDA_SUCCESS;
  }
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_INVALID_VALUE : result;
}

}  // namespace

CUresult BlockPools::state_of_caller() {
  CUcontext current = nullptr;
  const CUresult asked = real.cuCtxGetCurrent(&current);
  if (asked != CUDA_SUCCESS || (current != nullptr && contexts_.find(current) != nullptr)) {
    return asked;
  }
  CUdevice device = 0;
  const CUresult answer = real.cuCtxGetDevice(&device);  // only the thread's state can be wrong
  const bool of_thread = answer == CUDA_ERROR_INVALID_CONTEXT || answer == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                         answer == CUDA_ERROR_NOT_INITIALIZED || answer == CUDA_ERROR_DEINITIALIZED;
  return of_thread ? answer : CUDA_SUCCESS;
}

BlockPools::DevicePoolState &BlockPools::state_of(int device) {
  DevicePoolState *state = known_state(device);
  if (state == nullptr) {
    auto made = std::make_unique<DevicePoolState>(fences_, context_pools_, device, devices_.preallocation_on(device));
    if (devices_state_[device].compare_exchange_strong(state, made.get(), std::memory_order_acq_rel)) {
      state = made.release();
      for (int end = devices_end_.load(); end <= device && !devices_end_.compare_exchange_weak(end, device + 1);) {
      }
    }
  }
  return *state;
}

BlockPools::~BlockPools() {
  giver_.end();
  for (std::atomic<DevicePoolState *> &state : devices_state_) {
    delete state.load(std::memory_order_acquire);
  }
}

ContextPool &BlockPools::pool_of(const ContextRef &context) {
  ContextPool *pool = existing_pool(*context);
  if (pool != nullptr) {
    return *pool;
  }
  DevicePoolState &state = state_of(context->device);
  const ReentrantGate turn(state.choosing);
  pool = existing_pool(*context);
  if (pool != nullptr) {
    return *pool;
  }
  ContextPool &made = context_pools_.acquire(*context);
  choose_backing(context, made, state);
  PoolOfContext *other = nullptr;
  if (context->pool.compare_exchange_strong(other, &made)) {
    if (made.blocks.stitches() && state.peers.load() != 0) {  // a peer that came meanwhile did not find this pool
      let_peers_in(context->device, made);
    }
    start_giving(context->device);
    return made;
  }
  end_granules("cuMemAddressFree", context, made);
  made.release();  // a handler within this call was faster
  return *existing_pool(*context);
}

// Early: later the program may forbid new threads.
void BlockPools::start_giving(int device) noexcept {
  if (most_bytes(device) >= kWorthAThread) {
    giver_.start();
  }
}

std::vector<ContextRef> BlockPools::pooled_on(int device) {
  std::vector<ContextRef> contexts = contexts_.live();
  std::erase_if(contexts, [device](const ContextRef &context) {
    return context->device != device || existing_pool(*context) == nullptr;
  });
  return contexts;
}

CUresult BlockPools::allocate(const Request &request, const Contexts::Current &where, events::Via via,
                              CUdeviceptr *address, std::optional<events::Reason> &denied) {
  const std::uint64_t start = journal_.logging() ? now_ns() : 0;
  ContextPool &pool = pool_of(where.context);
  DevicePoolState &state = state_of(where.device);
  const ContextPool::InFlight in_flight(pool);
  if (where.context->ended_by.load() != nullptr) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (state.preallocation.load(std::memory_order_acquire) != DevicePoolState::done) {
    preallocate(request, where, pool, state);
  }
  if (is_beyond_order(where.device, request.upper_bound)) {
    heed_orders(request.api);
    const ledger::Account &account = ledger_.account(where.device);
    denied = account.charged() > account.limit() ? events::Reason::limit : events::Reason::group;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  merge_slabs(request, where, pool, state);
  pool::AllocateOutcome outcome{};
  for (int tries = 0;; ++tries) {
    MissHandler miss(*this, request, where, pool, state);
    outcome = pool.blocks.allocate(request.upper_bound, miss);
    if (outcome) {
      break;
    }
    // The driver's own error goes back, unless it is out of memory, or concerns calls of ours alone.
    if (miss.error() != CUDA_SUCCESS && miss.error() != CUDA_ERROR_OUT_OF_MEMORY &&
        miss.error() != CUDA_ERROR_NOT_SUPPORTED) {
      return miss.error();
    }
    if (tries == kMostTries || !miss.overtaken()) {
      denied = miss.reason();
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  events::Alloc event{outcome.block.address,
                      outcome.block.bytes,
                      request.requested,
                      where.device,
                      where.context->number,
                      request.api,
                      events::Kind::device,
                      events::Source::pool,
                      via,
                      start != 0 ? now_ns() - start : 0};
  event.slab = outcome.block.slab;
  event.stitched = pool.is_stitched(outcome.block.address);
  journal_.record(event);
  publish_change(request.api, pool, outcome.block.address, where.device);
  open_fast_path(pool, state);
  *address = outcome.block.address;
  return CUDA_SUCCESS;
}

CUresult BlockPools::retire(const char *api, std::uint64_t address, std::optional<CUstream> stream,
                            const ContextRef &owner, std::uint64_t &bytes) {
  const CUresult state = state_of_caller();
  if (state != CUDA_SUCCESS) {
    journal_.count_failed_free();
    return state;
  }
  ContextPool &pool = *existing_pool(*owner);
  Quarantine &quarantine = state_of(owner->device).quarantine;
  const ContextPool::InFlight in_flight(pool);
  bool due = false;
  Quarantine::PendingRecord pending;
  switch (quarantine.retire(pool, address, bytes, pending, due, &exports_, stream.has_value())) {
    case Quarantine::Retired::not_a_block:
      journal_.count_failed_free();
      return CUDA_ERROR_INVALID_VALUE;
    case Quarantine::Retired::no_host_memory:
      journal_.count_failed_free();
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Quarantine::Retired::retired:
    case Quarantine::Retired::kept:
      break;
  }
  journal_.record(events::Free{address, bytes, owner->device, owner->number, api,
                               reinterpret_cast<std::uintptr_t>(stream.value_or(nullptr)), events::Source::pool});
  pending.close();
  if (due || bytes >= quarantine.large_bytes()) {
    quarantine.collect(Quarantine::Sealing::always);  // its error is for the allocation that needs the memory
    keep_to_threshold(api, owner->device);
  }
  publish_change(api, pool, address, owner->device);
  reclaim_unshared(kFewKept);
  return CUDA_SUCCESS;
}

bool BlockPools::can_grow(const DevicePoolState &state, int device, std::uint64_t block_bytes) {
  return !state.full.load(std::memory_order_relaxed) &&
         ledger_.account(device).available() >= pool::Pool::slab_bytes_for(block_bytes);
}

// An allocation would have to wait for that sooner or later, perhaps under a lock that the work needs: the free waits.
bool BlockPools::holds_much(DevicePoolState &state, int device) {
  return state.quarantine.freed_bytes() > most_bytes(device) / 2 || state.quarantine.exceeds_cap();
}

void BlockPools::wait_after_free(const char *api, const ContextRef &owner, std::uint64_t bytes) noexcept {
  ContextPool &pool = *existing_pool(*owner);
  DevicePoolState &state = state_of(owner->device);
  if (pool.blocks.may_serve(bytes) || can_grow(state, owner->device, bytes)) {
    if (!holds_much(state, owner->device) || (!fences_.by_events() && fences_.captures().running())) {
      return;
    }
    state.quarantine.collect(Quarantine::Sealing::always);
    if (!holds_much(state, owner->device)) {
      return;
    }
  }
  const std::uint64_t start = now_ns();
  const Quarantine::Cleaned cleaned = state.quarantine.wait_for_context(*owner);
  if (cleaned.waited) {
    record_wait(api, owner->device, fences_.by_events() ? "event" : "synchronize", cleaned, start);
  }
}

// The context may have ended since; then its blocks went with it.
void BlockPools::wait_after_hit(CUcontext handle, std::uint64_t bytes) noexcept {
  const ContextRef context = contexts_.find(handle);
  ContextPool *pool = context != nullptr ? existing_pool(*context) : nullptr;
  if (pool == nullptr) {
    return;
  }
  const ContextPool::InFlight in_flight(*pool);
  if (context->ended_by.load() == nullptr) {
    wait_after_free("cuMemFree_v2", context, bytes);
  }
}

CUresult BlockPools::free(const char *api, std::uint64_t address, const ContextRef &owner) {
  std::uint64_t bytes = 0;
  const CUresult result = retire(api, address, std::nullopt, owner, bytes);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!synchronous_free_) {
    wait_after_free(api, owner, bytes);
    return CUDA_SUCCESS;
  }
  const std::uint64_t start = now_ns();
  const Quarantine::Cleaned cleaned = state_of(owner->device).quarantine.drain();
  if (cleaned.waited) {
    record_wait(api, owner->device, fences_.by_events() ? "event" : "synchronize", cleaned, start);
  }
  return cleaned.error;
}

CUresult BlockPools::free_in_stream(const char *api, std::uint64_t address, CUstream stream, const ContextRef &owner) {
  const CUresult state = state_of_stream(stream);
  if (state != CUDA_SUCCESS) {
    journal_.count_failed_free();
    return state;
  }
  std::uint64_t bytes = 0;
  return retire(api, address, stream, owner, bytes);
}

pool::SharedPool &BlockPools::blocks_of(const ContextRef &owner) {
  return existing_pool(*owner)->blocks;
}

std::optional<pool::Block> BlockPools::block_at(std::uint64_t address, const ContextRef &owner) {
  std::optional<pool::Block> block = blocks_of(owner).find(address);
  if (block && address - block->address >= std::max<std::uint64_t>(1, block->requested)) {
    block.reset();  // the rest of its last unit is no block to the driver
  }
  return block;
}

void BlockPools::record_wait(const char *api, int device, const char *how, const Quarantine::Cleaned &cleaned,
                             std::uint64_t start_ns) {
  journal_.record(events::Wait{device, api, how, cleaned.blocks, cleaned.bytes, now_ns() - start_ns, cleaned.error});
}

void BlockPools::seal_frees() noexcept {
  if (fences_.captures().running()) {
    return;
  }
  for (int device = 0, end = devices_end_.load(std::memory_order_relaxed); device < end; ++device) {
    if (DevicePoolState *state = known_state(device); state != nullptr && state->quarantine.has_unsealed()) {
      state->quarantine.collect(Quarantine::Sealing::before_work);
    }
  }
}

// What was freed before the program's own synchronise must not wait for what the program submits after it.
std::uint64_t BlockPools::before_synchronise() noexcept {
  for (std::atomic<DevicePoolState *> &each : devices_state_) {
    if (DevicePoolState *state = each.load(std::memory_order_acquire)) {
      state->quarantine.collect(Quarantine::Sealing::always);
      state->quarantine.seal_finely();
    }
  }
  return fences_.now();
}

void BlockPools::publish(int device) noexcept {
  devices_.heed(device);  // it touches shared memory anyway
  const events::DeviceTally &tally = journal_.tally().devices[device];
  ledger::Published published;
  published.used = tally.live_bytes.load(std::memory_order_relaxed);
  published.peak_used = tally.peak_bytes.load(std::memory_order_relaxed);
  published.allocations = tally.allocs.load(std::memory_order_relaxed);
  published.stitching = {.granules = tally.granules.load(std::memory_order_relaxed),
                         .blocks = 0,
                         .total = tally.stitched.load(std::memory_order_relaxed)};
  if (published.stitching.total != 0) {
    published.stitching.blocks = stitched_blocks(device);
  }
  static_assert(events::kReasonCount == ledger::kFailureReasons.size());
  for (std::size_t reason = 0; reason < published.failures.size(); ++reason) {
    published.failures[reason] = tally.denied[reason].load(std::memory_order_relaxed);
  }
  ledger_.account(device).publish(published);
}

void BlockPools::publish_exactly(int device) noexcept {
  constexpr int kMostTries = 100;
  const events::DeviceTally &tally = journal_.tally().devices[device];
  for (int i = 0; i < kMostTries; ++i) {
    const std::uint64_t use = used(device);
    const std::uint64_t allocations = tally.allocs.load(std::memory_order_relaxed);
    publish(device);
    // Another thread may have published newer figures first: what this one wrote must be seen before it looks again.
    publications_.fetch_add(1, std::memory_order_acq_rel);  // a fence is unknown to ThreadSanitizer
    if (use == used(device) && allocations == tally.allocs.load(std::memory_order_relaxed)) {
      return;
    }
  }
}

void BlockPools::publish_all_exactly() noexcept {
  for (int device = 0; device < ledger::kMaxDevices; ++device) {
    const std::uint64_t allocations = journal_.tally().devices[device].allocs.load(std::memory_order_relaxed);
    if (!ledger_.account(device).shows(used(device), allocations)) {
      publish_exactly(device);
    }
  }
}

std::uint64_t BlockPools::stitched_blocks(int device) noexcept try {
  std::uint64_t blocks = 0;
  for (const ContextRef &context : pooled_on(device)) {
    blocks += existing_pool(*context)->blocks.stitch_counts().live;
  }
  return blocks;
} catch (...) {  // no memory of the host to list the pools
  return 0;
}

std::uint64_t BlockPools::free_bytes(int device) {
  DevicePoolState *state = known_state(device);
  if (state == nullptr) {
    return 0;
  }
  return state->quarantine.bytes() + clean_bytes(device);
}

std::uint64_t BlockPools::clean_bytes(int device) {
  std::uint64_t bytes = 0;
  for (const ContextRef &context : pooled_on(device)) {
    bytes += existing_pool(*context)->blocks.statistics().free_bytes;
  }
  return bytes;
}

std::uint64_t BlockPools::reclaimable(int device) {
  std::uint64_t bytes = 0;
  for (const ContextRef &context : pooled_on(device)) {
    const pool::Statistics held = existing_pool(*context)->blocks.statistics();
    bytes += held.slab_bytes - held.used_bytes;
  }
  return bytes;
}

void BlockPools::clean(int device) noexcept {
  if (DevicePoolState *state = known_state(device)) {
    reclaim_unshared();
    state->quarantine.collect(Quarantine::Sealing::always);
  }
}

std::uint64_t BlockPools::returnable(int device, const ContextPool *asking) {
  std::uint64_t bytes = 0;
  for (const ContextRef &context : pooled_on(device)) {
    pool::SharedPool &blocks = existing_pool(*context)->blocks;
    if (blocks.stitches()) {
      if (existing_pool(*context) == asking) {
        continue;
      }
      const pool::Statistics held = blocks.statistics();
      bytes += held.retired_bytes == 0 ? blocks.gather_granules() : held.slab_bytes - held.used_bytes;
      continue;
    }
    pool::Slab slab{};
    for (pool::Address from = 0; blocks.slabs(from, &slab, 1) == 1; from = slab.address + 1) {
      pool::Block first{};
      const bool lives = blocks.live_blocks(slab.address, &first, 1) == 1 && first.address < slab.address + slab.bytes;
      bytes += lives ? 0 : slab.bytes;
    }
  }
  return bytes;
}

bool BlockPools::holds_elsewhere(int device, const Context *caller, std::uint64_t bytes) {
  std::uint64_t elsewhere = 0;
  for (const ContextRef &context : pooled_on(device)) {
    if (context.get() != caller) {
      const pool::Statistics held = existing_pool(*context)->blocks.statistics();
      elsewhere += held.free_bytes + held.retired_bytes;
    }
  }
  return elsewhere > 0 && bytes <= ledger_.account(device).available() + elsewhere;
}

void BlockPools::explain(events::Oom &oom, const Context *of) {
  DevicePoolState *state = known_state(oom.device);
  if (state == nullptr) {
    return;
  }
  oom.quarantined = state->quarantine.bytes() + exports_.kept_bytes(oom.device);
  const std::uint64_t not_used = reclaimable(oom.device);
  oom.used -= std::min(oom.used, not_used);
  oom.capturing = fences_.captures().running();
  if (of != nullptr) {
    if (ContextPool *pool = existing_pool(*of)) {
      oom.largest_free = std::max(oom.largest_free, pool->blocks.statistics().largest_hole);
    }
  }
}

CUresult BlockPools::find_slab(const pool::Block &block, const ContextPool &pool, ledger::ExportedBlock &in) {
  const std::optional<pool::Slab> slab = pool.blocks.slab_of(block.address);
  if (!slab || slab->id != block.slab) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUipcMemHandle of_slab{};
  const CUresult result = real.cuIpcGetMemHandle(&of_slab, slab->address);
  std::memcpy(in.handle, &of_slab, sizeof(in.handle));
  in.offset = block.address - slab->address;
  in.slab_bytes = slab->bytes;
  return result;
}

CUresult BlockPools::share(std::uint64_t address, const ContextRef &owner, CUipcMemHandle *handle,
                           std::string &refused) {
  ContextPool &pool = *existing_pool(*owner);
  const ContextPool::InFlight in_flight(pool);
  const std::optional<pool::Block> block = block_at(address, owner);
  if (!block || owner->ended_by.load() != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ledger::ExportedBlock in;
  in.bytes = block->requested;
  if (pool.blocks.stitches()) {
    if (!can_share_granules(owner->device)) {
      refused = "this driver gives granules no handle for that (ipc=direct, or backing=slab)";
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    in.kind = ledger::ExportKind::granules;
  } else if (const CUresult result = find_slab(*block, pool, in); result != CUDA_SUCCESS) {
    return result;
  }
  ledger::ExportToken token;
  for (const bool again : {false, true}) {
    switch (exports_.share(owner, *block, in, token, refused)) {
      case IpcExporter::Shared::shared:
        *handle = std::bit_cast<CUipcMemHandle>(token);
        refused.clear();
        return CUDA_SUCCESS;
      case IpcExporter::Shared::not_a_block:
        return CUDA_ERROR_INVALID_VALUE;
      case IpcExporter::Shared::no_file:
        return CUDA_ERROR_OUT_OF_MEMORY;
      case IpcExporter::Shared::no_place:
        refused = "more than " + std::to_string(ledger::shared::kExportRecords) + " blocks are shared";
        if (!again) {
          reclaim_unshared();
        }
        break;
    }
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The context's end waits for calls in flight; a later call sees that the context has ended.
void BlockPools::reclaim_unshared(std::size_t most) noexcept {
  exports_.reconcile(most, [this](const IpcExporter::Kept &kept) {
    ContextPool &pool = *existing_pool(*kept.owner);
    const ContextPool::InFlight in_flight(pool);
    return kept.owner->ended_by.load() == nullptr &&
           state_of(kept.owner->device).quarantine.take_back(pool, kept.address, kept.bytes);
  });
}

}  // namespace ration::policy
