#include "policy/calls/stream_memory.h"

#include <optional>
#include <vector>

namespace ration::policy {
namespace {

using driver::real;

// Whether what is submitted to the stream now becomes part of a graph. Asked only where a capture is known to run: the
// question itself would spoil one that the legacy stream is not part of.
bool is_captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const RelaxedCapture relaxed;
  return capture_status(stream, status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

StreamPools::PoolRef StreamMemory::find_pool(CUmemoryPool handle, int device) {
  if (!StreamPools::can_tell()) {
    return nullptr;
  }
  if (handle == nullptr) {
    const std::vector<Device> *devices = devices_.all();
    if (devices == nullptr || device >= static_cast<int>(devices->size()) || !real.cuDeviceGetMemPool.present() ||
        real.cuDeviceGetMemPool(&handle, (*devices)[static_cast<std::size_t>(device)].handle) != CUDA_SUCCESS) {
      return nullptr;
    }
  }
  return stream_pools_.find(handle, device);
}

CUresult StreamMemory::allocate(Request request, CUmemoryPool handle, CUstream stream, Act act, CUdeviceptr *address) {
  const auto undo = [stream](CUdeviceptr obtained) {
    return real.cuMemFreeAsync.present() ? real.cuMemFreeAsync(obtained, stream) : CUDA_ERROR_NOT_FOUND;
  };
  if (admission_.limit_unknown()) {
    return Admission::refuse_unknown(act, undo);
  }
  if (captures_.running() && is_captured(stream)) {  // a node of a graph: nothing is taken now
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
  if (pool == nullptr) {  // block by block, then, as if nothing were retained
    return admission_.obtain(books_.blocks, request, where, act, undo, address);
  }
  if (pool->device < 0) {
    request.kind = events::Kind::host;
    request.charged = false;
    return admission_.obtain(books_.blocks, request, where, act, undo, address);
  }
  where.device = pool->device;
  return allocate_from(pool, request, where, act, undo, address);
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
  std::optional<ledger::Transit> settling;
  const CUresult result = admission_.admit(request, where, counted, undo, obtained, &settling);
  // The pool holds its memory, and no context takes that along.
  return result == CUDA_SUCCESS
             ? admission_.enter_pooled(pool, request, where, books_.no_context, bytes, undo, obtained.address, address)
             : result;
}

CUresult StreamMemory::free(const char *api, CUdeviceptr address, CUstream stream, DriverCall call) {
  if (const ContextRef owner = pools_.owner_of(address)) {
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
    books_.blocks.finish_end(address);
    if (block.pool != nullptr) {
      stream_pools_.freed_in_order(block.device, block.size);
      if (stream_pools_.block_ended(*block.pool)) {
        room_.fence_orphans(block.device);
      }
    } else if (block.charged) {
      pending_.add(block.context, block.device, block.size, stream);
    }
  }
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

CUresult StreamMemory::trim_pool(const char *api, CUmemoryPool handle, DriverCall call) {
  const CUresult result = call();
  if (const StreamPools::PoolRef pool = stream_pools_.known(handle); result == CUDA_SUCCESS && pool != nullptr) {
    stream_pools_.reconcile(api, *pool);
  }
  return result;
}

}  // namespace ration::policy
