#include "policy/calls/stream_memory.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace ration::policy {

using driver::real;

StreamPools::PoolRef StreamMemory::find_pool(CUmemoryPool &handle, int device) {
  if (!StreamPools::can_tell()) {
    return nullptr;
  }
  CUmemoryPool named = std::exchange(handle, nullptr);
  if (named == nullptr) {
    const std::vector<Device> *devices = devices_.all();
    if (devices == nullptr || device >= static_cast<int>(devices->size()) || !real.cuDeviceGetMemPool.present() ||
        real.cuDeviceGetMemPool(&named, (*devices)[static_cast<std::size_t>(device)].handle) != CUDA_SUCCESS) {
      return nullptr;
    }
  }
  const CUmemoryPool behind = default_pools_.behind(named);
  handle = behind != named ? behind : nullptr;
  return stream_pools_.find(behind, device);
}

CUresult StreamMemory::allocate(Request request, CUmemoryPool handle, CUstream stream, Act act, CUdeviceptr *address) {
  const auto undo = [stream](CUdeviceptr obtained) {
    return real.cuMemFreeAsync.present() ? real.cuMemFreeAsync(obtained, stream) : CUDA_ERROR_NOT_FOUND;
  };
  request.stream = stream;
  if (admission_.limit_unknown()) {
    return Admission::refuse_as_driver(act, undo);
  }
  if (captures_.running() && is_captured(stream)) {  // a node of a graph: GraphMemory's, when that runs
    stream_pools_.note_graph_allocation();
    Obtained node;
    const CUresult result = act(node);
    if (result == CUDA_SUCCESS) {
      *address = node.address;
    }
    return result;
  }
  Contexts::Current where = contexts_.current();
  if (where.error == CUDA_SUCCESS) {
    const ContextRef context = contexts_.of_stream(stream);
    where.context = context;
    where.device = context->device;
  }
  devices_.learn_total(where.device);
  request.kind = events::Kind::pool;
  const StreamPools::PoolRef pool = find_pool(handle, where.device);
  if ((pool == nullptr || pool->device >= 0) && admission_.refuses_on_purpose(request, where)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (pool == nullptr) {  // block by block, then, as if nothing were retained
    return admission_.obtain(books_.blocks, request, where, act, undo, address);
  }
  if (pool->device < 0) {
    request.kind = events::Kind::host;
    request.charged = false;
    return admission_.obtain(books_.blocks, request, where, act, undo, address);
  }
  where.device = pool->device;
  if (handle == nullptr || where.error != CUDA_SUCCESS) {
    return allocate_from(pool, request, where, act, undo, address);
  }
  const auto act_behind = [&](Obtained &got) {
    got.bytes = request.requested;
    return real.cuMemAllocFromPoolAsync(&got.address, request.requested, handle, stream);
  };
  return allocate_from(pool, request, where, act_behind, undo, address);
}

// Where less is left than the pool may grow by, all of it is reserved and the pool's cap does the rest. nullopt:
// nothing was obtained.
std::optional<CUresult> StreamMemory::allocate_to_cap(StreamPools::Pool &pool, const Request &request, Act act,
                                                      Obtained &obtained) {
  ledger::Account &account = ledger_.account(pool.device);
  if (pool.cap == 0 || account.available() >= request.upper_bound) {
    return std::nullopt;
  }
  ledger::Transit transit(account.transits());
  const std::optional<StreamPools::Call> call = stream_pools_.reserve_to_cap(pool);
  if (!call) {
    return std::nullopt;
  }
  transit.hold();
  const CUresult result = act(obtained);
  stream_pools_.finish_and_release(pool, *call, result == CUDA_SUCCESS);
  if (result == CUDA_SUCCESS) {
    return result;
  }
  stream_pools_.reconcile(request.api, pool);  // releases what others left charged for this call
  return std::nullopt;
}

CUresult StreamMemory::allocate_from(const StreamPools::PoolRef &pool, Request request, const Contexts::Current &where,
                                     Act act, Undo undo, CUdeviceptr *address) {
  const std::uint64_t bytes = request.upper_bound;
  request.upper_bound = stream_pools_.upper_bound(*pool, bytes);
  const auto counted = [&](Obtained &got) {
    const StreamPools::Call call = stream_pools_.begin(*pool, request.upper_bound);
    const CUresult result = act(got);
    // No call relies on the cap of a program's own pool: what is reserved for a failed one is released by admit().
    stream_pools_.finish(*pool, call, result == CUDA_SUCCESS);
    got.bytes = request.upper_bound;  // until the pool says what it reserves
    return result;
  };
  Obtained obtained;
  std::optional<ledger::Transit> surplus;
  const std::optional<CUresult> to_cap = allocate_to_cap(*pool, request, act, obtained);
  const CUresult result = to_cap ? *to_cap : admission_.admit(request, where, counted, undo, obtained, &surplus);
  if (result == CUDA_SUCCESS) {
    pools_.gifts.start_giving();
  }
  // The pool holds its memory, and no context takes that along.
  return result == CUDA_SUCCESS
             ? admission_.enter_pooled(pool, request, where, books_.no_context, bytes, undo, obtained.address, address)
             : result;
}

CUresult StreamMemory::free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call) {
  if (const ContextRef owner = pools_.slabs.owner_of(address)) {
    return pools_.free_in_stream(api, address, stream, owner);
  }
  if (async_.is_deferred(address)) {
    return async_.refuse_deferred();
  }
  Block block;
  const AddressBook::Found found = address != 0 ? books_.blocks.begin_end(address, block) : AddressBook::Found::unknown;
  if (found == AddressBook::Found::ending_elsewhere) {
    journal_.count_failed_free();
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    if (found == AddressBook::Found::begun) {
      books_.keep(books_.blocks, {address, block});
    } else {
      journal_.count_failed_free();
    }
    return result;
  }
  if (found == AddressBook::Found::begun) {
    books_.record_end(api, address, block, stream);
    books_.publish(block);
    books_.blocks.finish_end(address);
    if (block.pool != nullptr) {
      stream_pools_.freed_in_order(block.device, block.size);
      async_.freed_in_order(block);
      if (stream_pools_.block_ended(*block.pool, block.size)) {
        room_.fence_orphans(block.device);
      }
    } else if (block.charged) {
      const ContextRef of = contexts_.of_stream(stream);
      const CurrentFor current(of->handle);  // an event and its stream are of one context
      pending_.add(of, block.device, block.size, stream);
    }
  }
  return result;
}

// With a cap, so that what is free in it can be had when the limit leaves no room for it to grow.
CUresult StreamMemory::create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties, DriverCall call) {
  CUmemPoolProps capped = properties != nullptr ? *properties : CUmemPoolProps{};
  const int device = capped.location.id;
  std::uint64_t most = UINT64_MAX;
  if (capped.location.type == CU_MEM_LOCATION_TYPE_DEVICE && device >= 0 && device < ledger::kMaxDevices) {
    const std::uint64_t cap = ledger_.account(device).cap();
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
  stream_pools_.created(*pool, capped);
  return result;
}

CUresult StreamMemory::destroy_pool(CUmemoryPool pool, DriverCall call) {
  const StreamPools::PoolRef known = stream_pools_.begin_destroy(pool);
  const CUresult result = call();
  if (known != nullptr && stream_pools_.finish_destroy(known, result == CUDA_SUCCESS)) {
    room_.fence_orphans(known->device);
  }
  return result;
}

CUresult StreamMemory::trim_pool(const char *api, CUmemoryPool handle, std::size_t kept) {
  const CUmemoryPool behind = default_pools_.behind(handle);
  const CUresult result = real.cuMemPoolTrimTo(behind, kept);
  if (const StreamPools::PoolRef pool = stream_pools_.known(behind); result == CUDA_SUCCESS && pool != nullptr) {
    stream_pools_.reconcile(api, *pool);
  }
  return result;
}

}  // namespace ration::policy
