#include "policy/calls/device_memory.h"

#include <optional>

#include "base/cancellation.h"
#include "base/clock.h"

namespace ration::policy {

CUresult DeviceMemory::allocate_slow(const Request &request, Act act, CUdeviceptr *address) {
  const bool pooled = request.pooled && is_for_pools(request.upper_bound);
  if (pooled && pools_.fast_path.records_hits() &&
      pools_.fast_path.allocate_hit(request, books_.via_of(request), address)) {
    return CUDA_SUCCESS;
  }
  return allocate_slow(request, pooled, act, address);
}

CUresult DeviceMemory::allocate_slow(const Request &given, bool pooled, Act act, CUdeviceptr *address) {
  Request request = given;
  request.begun_ns = room_.may_wait() ? now_ns() : 0;
  const CancellationOff uncancelled;
  imports_.poll();
  if (admission_.limit_unknown()) {
    return Admission::refuse_as_driver(act, undo_free);
  }
  const Contexts::Current where = admission_.current();
  if (admission_.refuses_on_purpose(request, where)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (pooled && where.error == CUDA_SUCCESS) {
    if (const StreamPools::PoolRef pool = async_.pool_on(where.device)) {
      return async_.allocate(request, where, pool, act, address);
    }
  }
  if (!options_.pool || !pooled || where.error != CUDA_SUCCESS || !FenceTracker::can_tell()) {
    return allocate_direct(request, where, act, address);
  }
  std::optional<events::Reason> denied;
  request.in_holes_only = true;
  CUresult result = pools_.allocate(request, where, books_.via_of(request), address, denied);
  request.in_holes_only = false;
  if (denied && !has_granules(*where.context) &&
      pools_.devices.on(where.device).bounds.strands_others(request.upper_bound)) {
    if (admission_.has_room(request, where, Room::Patience::briefly)) {
      return admission_.obtain_in_units(books_.blocks, request, where, act, undo_free, address);
    }
    denied.reset();
    result = pools_.allocate(request, where, books_.via_of(request), address, denied);
  }
  if (!denied) {
    if (result != CUDA_SUCCESS) {
      journal_.count_failed_alloc();
    }
    return result;
  }
  // A slab is whole units: what fits to the last byte the driver can still serve by itself.
  const ledger::Account &account = ledger_.account(where.device);
  // And what fits beside granules, which are whole pages, once those that hold nothing went back.
  const bool no_slab_ever =
      pool::Pool::slab_bytes_for(request.upper_bound) > account.limit() || has_granules(*where.context);
  if ((*denied == events::Reason::limit || *denied == events::Reason::group) &&
      (request.upper_bound <= account.available() ||
       (no_slab_ever && room_.make_room({request.api, where.device, request.upper_bound, nullptr, 0, request.begun_ns},
                                        Room::Patience::briefly)))) {
    return admission_.obtain_in_units(books_.blocks, request, where, act, undo_free, address);
  }
  return admission_.deny(request, where, *denied);
}

CUresult DeviceMemory::allocate_direct(Request request, const Contexts::Current &where, Act act, CUdeviceptr *address) {
  request.pooled = false;
  return admission_.obtain_in_units(books_.blocks, request, where, act, undo_free, address);
}

CUresult DeviceMemory::allocate_managed(Request request, Act act, CUdeviceptr *address) {
  const CancellationOff uncancelled;
  request.kind = events::Kind::managed;
  request.charged = options_.limit_managed;
  return admission_.obtain_here(books_.blocks, request, act, undo_free, address);
}

CUresult DeviceMemory::free_missed(const char *api, CUdeviceptr address, DriverCall call) {
  return pools_.fast_path.free_hit(api, address) ? CUDA_SUCCESS : free_slow(api, address, call);
}

CUresult DeviceMemory::free_slow(const char *api, CUdeviceptr address, DriverCall call) {
  const CancellationOff uncancelled;
  if (const ContextRef owner = address != 0 ? pools_.slabs.owner_of(address) : nullptr) {
    return pools_.free(api, address, owner);
  }
  if (async_.is_deferred(address)) {
    return async_.refuse_deferred();
  }
  std::optional<Block> deferred;
  const auto end = [&](const Block *block) {
    if (block == nullptr || !async_.owns(*block)) {
      return call();
    }
    if (const CUresult error = admission_.current().error; error != CUDA_SUCCESS) {
      return error;  // as the driver's own free
    }
    deferred = *block;
    return async_.defer(address, *block);
  };
  const CUresult result = books_.end(books_.blocks, api, address, end);
  return result == CUDA_SUCCESS && deferred ? async_.finish_free(api, *deferred) : result;
}

}  // namespace ration::policy
