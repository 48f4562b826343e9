#include "policy/block_pool/block_pools.h"

#include <algorithm>

#include "base/clock.h"
#include "base/wait.h"
#include "events/diagnostics.h"
#include "policy/block_pool/movement.h"

namespace ration::policy {
namespace {

// How often a request tries again because other threads freed meanwhile. The bound ends a request that no hole will
// ever fit.
constexpr int kMostTries = 100;

// CUDA_SUCCESS if a free may go into `stream`, else an error of the driver's. A stream that is being captured cannot
// take one: the free node of a graph must be given an allocation of a graph (cuda.h).
CUresult state_of_stream(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = capture_status(stream, status);
  if (result == CUDA_ERROR_NOT_SUPPORTED) {  // then capture is not supported either
    return CUDA_SUCCESS;
  }
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_INVALID_VALUE : result;
}

}  // namespace

BlockPools::BlockPools(const PoolParts &parts, IpcExporter &exports, Room &room, const BlockPoolOptions &options)
    : parts_(parts),
      exports_(exports),
      synchronous_free_(options.synchronous_free),
      slab_backing_(parts, devices, slabs, publication),
      devices(parts),
      publication(parts, devices),
      granules(parts, devices, slabs, publication, options.backing),
      sharing(devices, exports),
      returning(parts, devices, sharing),
      gifts(parts, devices, publication, returning, room),
      fast_path(parts, devices, returning, options.no_fast_path || options.synchronous_free),
      merger_(parts.fences, parts.journal),
      preallocator_(parts_.devices, room),
      growth_parts_{parts.contexts, parts.fences, parts.devices, sharing, gifts, room} {}

ContextPool &BlockPools::pool_of(const ContextRef &context) {
  if (ContextPool *pool = existing_pool(*context)) {
    return *pool;
  }
  const ReentrantGate turn(devices.on(context->device).making);
  if (ContextPool *pool = existing_pool(*context)) {
    return *pool;
  }
  ContextPool &made = parts_.context_pools.acquire(*context);
  made.backing = &slab_backing_;
  if (granules.open(context, made)) {
    made.backing = &granules;
  }
  PoolOfContext *other = nullptr;
  if (context->pool.compare_exchange_strong(other, &made)) {
    events::explain(events::Level::debug, "device ", context->device, ": the pool of context ", context->number,
                    " is made of ", made.backing == &granules ? "granules" : "slabs");
    granules.let_late_peers_in(*context, made);
    gifts.start_giving();
    return made;
  }
  made.backing->end("cuMemAddressFree", context, made);
  made.release();  // a handler that ran within this call was faster
  return *existing_pool(*context);
}

CUresult BlockPools::allocate(const Request &request, const Contexts::Current &where, events::Via via,
                              CUdeviceptr *address, std::optional<events::Reason> &denied) {
  const std::uint64_t start = parts_.journal.logging() ? now_ns() : 0;
  const PoolCall call{request, where, pool_of(where.context), devices.on(where.device)};
  const ContextPool::InFlight in_flight(call.pool);
  if (where.context->ended_by.load() != nullptr) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  pool::Block block{};
  if (const CUresult result = serve(call, block, denied); result != CUDA_SUCCESS) {
    return result;
  }
  events::Alloc event{
      block.address, block.bytes,          request.requested,    where.device, where.context->number,
      request.api,   events::Kind::device, events::Source::pool, via,          start != 0 ? now_ns() - start : 0};
  event.slab = block.slab;
  event.stitched = is_stitched(call.pool, block.address);
  parts_.journal.record(event);
  gifts.note_change(request.api, call.device, is_stitched(call.pool, block.address));
  fast_path.open(call.pool, call.device);
  *address = block.address;
  return CUDA_SUCCESS;
}

CUresult BlockPools::serve(const PoolCall &call, pool::Block &block, std::optional<events::Reason> &denied) {
  preallocator_.prepare(call);
  if (gifts.is_beyond_order(call.device.device, call.request.upper_bound)) {
    gifts.heed_orders(call.request.api);
    const ledger::Account &account = call.device.account;
    denied = account.charged() > account.limit() ? events::Reason::limit : events::Reason::group;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  merger_.prepare(call);
  Room::Retries retries;
  Backoff backoff;
  for (int tries = 0;; ++tries) {
    const Movement movement(parts_, call);
    Growth growth(growth_parts_, call);
    const pool::AllocateOutcome outcome = call.pool.blocks.allocate(call.request.upper_bound, growth);
    if (outcome) {
      block = outcome.block;
      return CUDA_SUCCESS;
    }
    // The driver's own error is returned, unless it is out of memory or concerns only calls of ours.
    if (growth.error() != CUDA_SUCCESS && growth.error() != CUDA_ERROR_OUT_OF_MEMORY &&
        growth.error() != CUDA_ERROR_NOT_SUPPORTED) {
      return growth.error();
    }
    if (tries < kMostTries && growth.overtaken()) {
      continue;
    }
    if (growth.error() != CUDA_SUCCESS || !movement.may_have_hidden_memory() || !retries.allow()) {
      denied = growth.reason();
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    backoff.sleep();
  }
}

// Design: design/quarantine.md#racing-frees
CUresult BlockPools::retire(const char *api, std::uint64_t address, std::optional<CUstream> stream,
                            const ContextRef &owner, std::uint64_t &bytes) {
  if (const CUresult state = parts_.contexts.state_of_caller(); state != CUDA_SUCCESS) {
    parts_.journal.count_failed_free();
    return state;
  }
  ContextPool &pool = *existing_pool(*owner);
  DevicePool &device = devices.on(owner->device);
  const ContextPool::InFlight in_flight(pool);
  bool due = false;
  Quarantine::PendingRecord pending;
  switch (device.quarantine.retire(pool, address, bytes, pending, due, &exports_, stream.has_value())) {
    case Quarantine::Retired::not_a_block:
      parts_.journal.count_failed_free();
      return CUDA_ERROR_INVALID_VALUE;
    case Quarantine::Retired::no_host_memory:
      parts_.journal.count_failed_free();
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Quarantine::Retired::retired:
    case Quarantine::Retired::kept:
      break;
  }
  parts_.journal.record(events::Free{address, bytes, owner->device, owner->number, api,
                                     reinterpret_cast<std::uintptr_t>(stream.value_or(nullptr)), events::Source::pool});
  pending.reset();
  if (due || bytes >= device.quarantine.pace().large_bytes()) {
    device.quarantine.collect(Quarantine::Sealing::always);  // its error is for the call that needs the memory
    returning.keep_to_threshold(api, owner->device);
  }
  gifts.note_change(api, device, is_stitched(pool, address));
  sharing.reclaim_unshared(Sharing::kFew);
  return CUDA_SUCCESS;
}

CUresult BlockPools::free(const char *api, std::uint64_t address, const ContextRef &owner) {
  std::uint64_t bytes = 0;
  const CUresult result = retire(api, address, std::nullopt, owner, bytes);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  DevicePool &device = devices.on(owner->device);
  if (!synchronous_free_) {
    device.wait_after_free(api, owner, bytes);
    return CUDA_SUCCESS;
  }
  const std::uint64_t start = now_ns();
  const Quarantine::Cleaned cleaned = device.quarantine.drain();
  if (cleaned.waited) {
    device.record_wait(api, parts_.fences.by_events() ? "event" : "synchronize", cleaned, start);
  }
  return cleaned.error;
}

CUresult BlockPools::free_in_stream(const char *api, std::uint64_t address, CUstream stream, const ContextRef &owner) {
  if (const CUresult state = state_of_stream(stream); state != CUDA_SUCCESS) {
    parts_.journal.count_failed_free();
    return state;
  }
  std::uint64_t bytes = 0;
  return retire(api, address, stream, owner, bytes);
}

void BlockPools::explain(events::Oom &oom, const Context *of) {
  DevicePool *device = devices.known(oom.device);
  if (device == nullptr) {
    return;
  }
  oom.quarantined = device->quarantine.bytes() + exports_.kept_bytes(oom.device);
  const std::uint64_t unused = device->unused_bytes();
  oom.used -= std::min(oom.used, unused);
  oom.capturing = parts_.fences.captures().running();
  if (ContextPool *pool = of != nullptr ? existing_pool(*of) : nullptr) {
    oom.largest_free = std::max(oom.largest_free, pool->blocks.statistics().largest_hole);
    oom.page_bytes = pool->backing->gives_parts() ? pool->layout.page_bytes : 0;
    oom.untaken = device->account.available();
    for (const ContextRef &context : device->contexts()) {
      oom.free_in_pages += existing_pool(*context)->blocks.free_granule_bytes();
    }
  }
}

void BlockPools::begin_end(const ContextRef &context) noexcept {
  context->close_to_hits();
  slabs.begin_end(context);
}

void BlockPools::finish_end(const char *api, const ContextRef &context) noexcept {
  parts_.fences.captures().forget(context);
  parts_.fences.forget(context);
  ContextPool *pool = existing_pool(*context);
  DevicePool *device = devices.known(context->device);
  if (pool == nullptr || device == nullptr) {
    return;
  }
  for (Waiter waiter; pool->in_flight.load() != 0; waiter.pause()) {
    // The other call sees that the context is gone, or is writing its record.
  }
  device->quarantine.forget(*pool);
  exports_.forget(*pool);
  pool::Block blocks[32];
  while (const std::size_t count = pool->blocks.live_blocks(0, blocks, std::size(blocks))) {
    for (std::size_t i = 0; i < count; ++i) {
      if (pool->blocks.free(blocks[i].address)) {
        parts_.journal.record(events::Free{blocks[i].address, blocks[i].bytes, context->device, context->number, api, 0,
                                           events::Source::pool});
      }
    }
  }
  pool->backing->end(api, context, *pool);
  if (device->turn.begin_anew(context.get(), device->bounds.plan.bytes > 0)) {
    parts_.context_pools.close_all(context->device);  // the next context to allocate may have to preallocate
  }
}

}  // namespace ration::policy
