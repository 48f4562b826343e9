// Memory that the driver's own pools give out in stream order: the half of Policy behind cuMemAllocAsync.
// Layer: policy.
#include <optional>

#include "policy/calls/policy.h"

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

StreamPools::PoolRef Policy::stream_pool(CUmemoryPool handle, int device) {
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

CUresult Policy::allocate_in_stream(Request request, CUmemoryPool handle, CUstream stream, const Act &act,
                                    CUdeviceptr *address) {
  describe();
  const auto undo = [stream](CUdeviceptr obtained) {
    return real.cuMemFreeAsync.present() ? real.cuMemFreeAsync(obtained, stream) : CUDA_ERROR_NOT_FOUND;
  };
  if (devices_.limit_unknown()) {
    return refuse_unknown(act, undo);
  }
  if (pools_.captures().running() && is_captured(stream)) {  // a node of a graph: nothing is taken now
    Obtained node;
    const CUresult result = act(node);
    if (result == CUDA_SUCCESS) {
      *address = node.address;
    }
    return result;
  }
  Contexts::Current where = contexts_.current();
  if (where.error == CUDA_SUCCESS) {
    const ContextRef context = context_of(stream);
    where.context = context;
    where.device = context->device;
  }
  devices_.learn_total(where.device);
  request.kind = events::Kind::pool;
  const StreamPools::PoolRef pool = stream_pool(handle, where.device);
  if (pool == nullptr) {  // block by block, then, as if nothing were retained
    return obtain(book_, request, where, act, undo, address);
  }
  if (pool->device < 0) {
    request.kind = events::Kind::host;
    request.charged = false;
    return obtain(book_, request, where, act, undo, address);
  }
  where.device = pool->device;
  return obtain_from(pool, request, where, act, undo, address);
}

CUresult Policy::obtain_from(const StreamPools::PoolRef &pool, Request request, const Contexts::Current &where,
                             const Act &act, const Undo &undo, CUdeviceptr *address) {
  const std::uint64_t bytes = request.upper_bound;
  request.upper_bound = stream_pools_.upper_bound(*pool, bytes);
  const auto counted = [&](Obtained &got) {
    stream_pools_.begin(*pool, request.upper_bound);
    const CUresult result = act(got);
    stream_pools_.finish(*pool, request.upper_bound, result == CUDA_SUCCESS);
    got.bytes = request.upper_bound;  // until the pool says what it reserves
    return result;
  };
  Obtained obtained;
  const CUresult result = admit(request, where, counted, undo, obtained);
  // Its memory is the pool's, which no context takes along.
  return result == CUDA_SUCCESS ? enter_from(pool, request, where, nowhere_, bytes, undo, obtained.address, address)
                                : result;
}

CUresult Policy::enter_from(const StreamPools::PoolRef &pool, const Request &request, const Contexts::Current &where,
                            const ContextRef &owner, std::uint64_t bytes, const Undo &undo, CUdeviceptr obtained,
                            CUdeviceptr *address) {
  const auto give_back = [&] {
    undo(obtained);
    stream_pools_.block_ended(*pool);
    pools_.wait_for_work();
    stream_pools_.trim(request.api, pool->device);
  };
  if (const std::uint64_t missing = stream_pools_.settle(request.api, *pool); missing > 0) {
    const ledger::ReserveOutcome more = ledger_.account(pool->device).reserve(missing);
    if (more != ledger::ReserveOutcome::granted) {
      give_back();
      return deny(request, where,
                  more == ledger::ReserveOutcome::over_limit ? events::Reason::limit : events::Reason::group);
    }
    stream_pools_.add(request.api, *pool, missing);
  }
  const Block block{bytes, pool->device, owner, events::Kind::pool, true, pool};
  const CUresult entered = enter_block(book_, request, block, obtained, 0);
  if (entered != CUDA_SUCCESS) {
    give_back();
    return entered;
  }
  *address = obtained;
  return CUDA_SUCCESS;
}

void Policy::stream_pool_created(CUmemoryPool pool, const CUmemLocation &location) noexcept {
  stream_pools_.created(pool, location);
}

CUresult Policy::destroy_stream_pool(CUmemoryPool pool, const std::function<CUresult()> &act) {
  const StreamPools::PoolRef known = stream_pools_.begin_destroy(pool);
  const CUresult result = act();
  if (known != nullptr) {
    stream_pools_.finish_destroy(known, result == CUDA_SUCCESS);
  }
  return result;
}

CUresult Policy::trim_stream_pool(const char *api, CUmemoryPool handle, const std::function<CUresult()> &act) {
  const CUresult result = act();
  if (const StreamPools::PoolRef pool = stream_pools_.known(handle); result == CUDA_SUCCESS && pool != nullptr) {
    stream_pools_.settle(api, *pool);
  }
  return result;
}

}  // namespace ration::policy
