#include "policy/calls/stream_memory.h"

#include <optional>
#include <utility>
#include <vector>

#include "policy/calls/call_parts.h"

namespace ration::policy {

using driver::real;

namespace {

// `handle` gets the pool to allocate from, if it is not the one that the program named; else null.
StreamPools::PoolRef find_pool(const CallParts &parts, CUmemoryPool &handle, int device) {
  if (!StreamPools::can_tell()) {
    return nullptr;
  }
  CUmemoryPool named = std::exchange(handle, nullptr);
  if (named == nullptr) {
    const std::vector<Device> *devices = parts.devices.all();
    if (devices == nullptr || device >= static_cast<int>(devices->size()) || !real.cuDeviceGetMemPool.present() ||
        real.cuDeviceGetMemPool(&named, (*devices)[static_cast<std::size_t>(device)].handle) != CUDA_SUCCESS) {
      return nullptr;
    }
  }
  const CUmemoryPool behind = parts.default_pools.behind(named);
  handle = behind != named ? behind : nullptr;
  return parts.stream_pools.find(behind, device);
}

// If less is left than the pool may grow by, reserves all of it, and the pool's cap keeps it within the limit. nullopt:
// nothing was obtained.
std::optional<CUresult> allocate_to_cap(const CallParts &parts, StreamPools::Pool &pool, const Request &request,
                                        Act act, Obtained &obtained) {
  ledger::Account &account = parts.account(pool.device);
  if (pool.cap == 0 || account.available() >= request.upper_bound) {
    return std::nullopt;
  }
  ledger::Transit transit(account.transits());
  const std::optional<StreamPools::Call> call = parts.stream_pools.reserve_to_cap(pool);
  if (!call) {
    return std::nullopt;
  }
  transit.hold();
  const CUresult result = act(obtained);
  parts.stream_pools.finish_and_release(pool, *call, result == CUDA_SUCCESS);
  if (result == CUDA_SUCCESS) {
    return result;
  }
  parts.stream_pools.reconcile(request.api, pool);  // releases what others left charged for this call
  return std::nullopt;
}

CUresult allocate_from(const CallParts &parts, const StreamPools::PoolRef &pool, Request request,
                       const Contexts::Current &where, Act act, Undo undo, CUdeviceptr *address) {
  const std::uint64_t bytes = request.upper_bound;
  request.upper_bound = parts.stream_pools.upper_bound(*pool, bytes);
  const auto counted = [&](Obtained &got) {
    const StreamPools::Call call = parts.stream_pools.begin(*pool, request.upper_bound);
    const CUresult result = act(got);
    // No call relies on the cap of a program's own pool: what is reserved for a failed one is released by admit().
    parts.stream_pools.finish(*pool, call, result == CUDA_SUCCESS);
    got.bytes = request.upper_bound;  // until the pool says what it reserves
    return result;
  };
  Obtained obtained;
  std::optional<ledger::Transit> surplus;
  const std::optional<CUresult> to_cap = allocate_to_cap(parts, *pool, request, act, obtained);
  const CUresult result = to_cap ? *to_cap : parts.admission.admit(request, where, counted, undo, obtained, &surplus);
  if (result == CUDA_SUCCESS) {
    parts.pools.gifts.start_giving();
  }
  // The pool holds the memory, which does not end with a context.
  return result == CUDA_SUCCESS ? parts.admission.enter_pooled(pool, request, where, parts.books.no_context, bytes,
                                                               undo, obtained.address, address)
                                : result;
}

}  // namespace

CUresult StreamMemory::allocate(Request request, CUmemoryPool handle, CUstream stream, Act act, CUdeviceptr *address) {
  const auto undo = [stream](CUdeviceptr obtained) {
    return real.cuMemFreeAsync.present() ? real.cuMemFreeAsync(obtained, stream) : CUDA_ERROR_NOT_FOUND;
  };
  request.stream = stream;
  if (parts_.devices.limit_unknown()) {
    return Admission::refuse_as_driver(act, undo);
  }
  if (parts_.captures.running() && is_captured(stream)) {  // a node of a graph, for which GraphMemory is responsible
    parts_.stream_pools.note_graph_allocation();
    Obtained node;
    const CUresult result = act(node);
    if (result == CUDA_SUCCESS) {
      *address = node.address;
    }
    return result;
  }
  Contexts::Current where = parts_.contexts.current();
  if (where.error == CUDA_SUCCESS) {
    const ContextRef context = parts_.contexts.of_stream(stream);
    where.context = context;
    where.device = context->device;
  }
  parts_.devices.learn_total(where.device);
  request.kind = events::Kind::pool;
  const StreamPools::PoolRef pool = find_pool(parts_, handle, where.device);
  if ((pool == nullptr || pool->device >= 0) && parts_.admission.refuses_on_purpose(request, where)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (pool == nullptr) {  // charged block by block, as if nothing were retained
    return parts_.admission.obtain(parts_.books.blocks, request, where, act, undo, address);
  }
  if (pool->device < 0) {
    request.kind = events::Kind::host;
    request.charged = false;
    return parts_.admission.obtain(parts_.books.blocks, request, where, act, undo, address);
  }
  where.device = pool->device;
  if (handle == nullptr || where.error != CUDA_SUCCESS) {
    return allocate_from(parts_, pool, request, where, act, undo, address);
  }
  const auto act_behind = [&](Obtained &got) {
    got.bytes = request.requested;
    return real.cuMemAllocFromPoolAsync(&got.address, request.requested, handle, stream);
  };
  return allocate_from(parts_, pool, request, where, act_behind, undo, address);
}

CUresult StreamMemory::free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call) {
  if (const ContextRef owner = parts_.pools.slabs.owner_of(address)) {
    return parts_.pools.free_in_stream(api, address, stream, owner);
  }
  if (parts_.async_pools.covers(address)) {
    return parts_.async_memory.refuse_deferred();
  }
  Block block;
  const AddressBook::Found found =
      address != 0 ? parts_.books.blocks.begin_end(address, block) : AddressBook::Found::unknown;
  if (found == AddressBook::Found::ending_elsewhere) {
    parts_.journal.count_failed_free();
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    if (found == AddressBook::Found::begun) {
      parts_.books.keep(parts_.books.blocks, {address, block});
    } else {
      parts_.journal.count_failed_free();
    }
    return result;
  }
  if (found == AddressBook::Found::begun) {
    parts_.books.record_end(api, address, block, stream);
    parts_.books.publish(block);
    parts_.books.blocks.finish_end(address);
    if (block.pool != nullptr) {
      parts_.stream_pools.freed_in_order(block.device, block.size);
      if (parts_.async_pools.owns(block.pool)) {
        parts_.async_pools.freed_in_order(block.device, block.size);
      }
      if (parts_.stream_pools.block_ended(*block.pool, block.size)) {
        parts_.room.fence_orphans(block.device);
      }
    } else if (block.charged) {
      const ContextRef of = parts_.contexts.of_stream(stream);
      const CurrentFor current(of->handle);  // an event and its stream are of one context
      parts_.pending.add({of, block.device, block.size, {}, block.context}, stream);
    }
  }
  return result;
}

// Creates the pool with a cap, so that memory which is free in it can be had when the limit leaves no room for it to
// grow.
CUresult StreamMemory::create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties, DriverCall call) {
  CUmemPoolProps capped = properties != nullptr ? *properties : CUmemPoolProps{};
  const int device = capped.location.id;
  std::uint64_t most = UINT64_MAX;
  if (capped.location.type == CU_MEM_LOCATION_TYPE_DEVICE && device >= 0 && device < ledger::kMaxDevices) {
    const std::uint64_t cap = parts_.account(device).cap();
    most = cap != UINT64_MAX ? StreamPools::cap_within(cap) : cap;
  }
  const bool lowered = pool != nullptr && most != UINT64_MAX && most != 0 &&
                       (capped.maxSize == 0 || capped.maxSize > most) && StreamPools::have_caps();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (lowered) {
    capped.maxSize = most;
    result = real.cuMemPoolCreate(pool, &capped);
  }
  if (result != CUDA_SUCCESS) {
    if (result = call(); result != CUDA_SUCCESS) {
      return result;
    }
    capped = *properties;
  }
  parts_.stream_pools.created(*pool, capped);
  return result;
}

CUresult StreamMemory::destroy_pool(CUmemoryPool pool, DriverCall call) {
  const StreamPools::PoolRef known = parts_.stream_pools.begin_destroy(pool);
  const CUresult result = call();
  if (known != nullptr && parts_.stream_pools.finish_destroy(known, result == CUDA_SUCCESS)) {
    parts_.room.fence_orphans(known->device);
  }
  return result;
}

CUmemoryPool StreamMemory::behind(CUmemoryPool pool) noexcept {
  return parts_.default_pools.behind(pool);
}

CUresult StreamMemory::trim_pool(const char *api, CUmemoryPool handle, std::size_t kept) {
  const CUmemoryPool behind = parts_.default_pools.behind(handle);
  const CUresult result = real.cuMemPoolTrimTo(behind, kept);
  if (const StreamPools::PoolRef pool = parts_.stream_pools.known(behind); result == CUDA_SUCCESS && pool != nullptr) {
    parts_.stream_pools.reconcile(api, *pool);
  }
  return result;
}

}  // namespace ration::policy
