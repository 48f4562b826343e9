#include "policy/calls/device_memory.h"

#include <optional>

#include "base/cancellation.h"
#include "base/clock.h"
#include "policy/calls/call_parts.h"

namespace ration::policy {

DeviceMemory::DeviceMemory(const CallParts &parts)
    : parts_(parts), pools_(parts.pools), large_direct_(parts.options.large_direct) {}

CUresult DeviceMemory::allocate_slow(const Request &request, Act act, CUdeviceptr *address) {
  const bool pooled = request.pooled && is_for_pools(request.upper_bound);
  if (pooled && pools_.fast_path.records_hits() &&
      pools_.fast_path.allocate_hit(request, parts_.books.via_of(request), address)) {
    return CUDA_SUCCESS;
  }
  return allocate_slow(request, pooled, act, address);
}

CUresult DeviceMemory::allocate_slow(const Request &given, bool pooled, Act act, CUdeviceptr *address) {
  Request request = given;
  request.begun_ns = parts_.options.wait_ns != 0 ? now_ns() : 0;
  const CancellationOff uncancelled;
  parts_.imports.poll();
  if (parts_.devices.limit_unknown()) {
    return Admission::refuse_as_driver(act, undo_free);
  }
  const Contexts::Current where = parts_.admission.current();
  if (parts_.admission.refuses_on_purpose(request, where)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (pooled && where.error == CUDA_SUCCESS && parts_.options.async) {
    if (const StreamPools::PoolRef pool = parts_.async_pools.pool_on(where.device)) {
      return parts_.async_memory.allocate(request, where, pool, act, address);
    }
  }
  if (!parts_.options.pool || !pooled || where.error != CUDA_SUCCESS || !FenceTracker::can_tell()) {
    request.pooled = false;
    return parts_.admission.obtain_in_units(parts_.books.blocks, request, where, act, undo_free, address);
  }
  const auto obtain_beside_pool = [&] {
    const RelaxedCapture relaxed;  // as if the pool had served it, so that no capture is lost
    return parts_.admission.obtain_in_units(parts_.books.blocks, request, where, act, undo_free, address);
  };
  std::optional<events::Reason> denied;
  request.in_holes_only = true;
  CUresult result = pools_.allocate(request, where, parts_.books.via_of(request), address, denied);
  request.in_holes_only = false;
  if (denied && !has_granules(*where.context) &&
      pools_.devices.on(where.device).bounds.strands_others(request.upper_bound)) {
    if (parts_.admission.has_room(request, where, Room::Patience::briefly)) {
      return obtain_beside_pool();
    }
    denied.reset();
    result = pools_.allocate(request, where, parts_.books.via_of(request), address, denied);
  }
  if (!denied) {
    if (result != CUDA_SUCCESS) {
      parts_.journal.count_failed_alloc();
    }
    return result;
  }
  // A slab is a whole number of units. The driver can still serve by itself a request that fits to the last byte,
  const ledger::Account &account = parts_.account(where.device);
  // and one that fits next to granules, which are whole pages, once those that hold nothing have gone back.
  const bool no_slab_ever =
      pool::Pool::slab_bytes_for(request.upper_bound) > account.limit() || has_granules(*where.context);
  if ((*denied == events::Reason::limit || *denied == events::Reason::group) &&
      (request.upper_bound <= account.available() ||
       (no_slab_ever &&
        parts_.room.make_room({request.api, where.device, request.upper_bound, nullptr, 0, request.begun_ns},
                              Room::Patience::briefly)))) {
    return obtain_beside_pool();
  }
  return parts_.admission.deny(request, where, *denied);
}

CUresult DeviceMemory::allocate_managed(Request request, Act act, CUdeviceptr *address) {
  const CancellationOff uncancelled;
  request.kind = events::Kind::managed;
  request.charged = parts_.options.limit_managed;
  return parts_.admission.obtain_here(parts_.books.blocks, request, act, undo_free, address);
}

CUresult DeviceMemory::free_missed(const char *api, CUdeviceptr address, DriverCall call) {
  return pools_.fast_path.free_hit(api, address) ? CUDA_SUCCESS : free_slow(api, address, call);
}

CUresult DeviceMemory::free_slow(const char *api, CUdeviceptr address, DriverCall call) {
  const CancellationOff uncancelled;
  if (const ContextRef owner = address != 0 ? pools_.slabs.owner_of(address) : nullptr) {
    return pools_.free(api, address, owner);
  }
  if (parts_.async_pools.covers(address)) {
    return parts_.async_memory.refuse_deferred();
  }
  std::optional<Block> deferred;
  const auto end = [&](const Block *block) {
    if (block != nullptr && parts_.options.pool && block->kind == events::Kind::device) {
      const RelaxedCapture relaxed;  // it may have been served in place of a pool that had no room
      return call();
    }
    if (block == nullptr || !parts_.async_pools.owns(block->pool)) {
      return call();
    }
    if (const CUresult error = parts_.admission.current().error; error != CUDA_SUCCESS) {
      return error;  // as the driver's own free does
    }
    deferred = *block;
    return parts_.async_memory.defer(address, *block);
  };
  const CUresult result = parts_.books.end(parts_.books.blocks, api, address, end);
  return result == CUDA_SUCCESS && deferred ? parts_.async_memory.finish_free(api, *deferred) : result;
}

}  // namespace ration::policy
