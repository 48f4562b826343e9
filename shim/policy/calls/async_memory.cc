// Synchronous allocations from the driver's memory pools (mode async): the part of Policy behind cuMemAlloc there.
// Layer: policy.
#include <algorithm>
#include <string>

#include "events/diagnostics.h"
#include "policy/calls/policy.h"

namespace ration::policy {

using driver::real;

CUresult Policy::allocate_async(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                                CUdeviceptr *address) {
  request.kind = events::Kind::pool;
  const int device = where.device;
  preallocate_async(request, where, pool);
  async_.settle(device);
  const std::uint64_t bytes = request.upper_bound;
  const auto undo = [&](CUdeviceptr obtained) { return async_.put_back(where.context, obtained); };
  const auto take = [&](std::uint64_t bound, Obtained &got) {
    stream_pools_.begin(*pool, bound);
    const CUresult result = async_.take(request.api, device, where.context, bytes, &got.address);
    stream_pools_.finish(*pool, bound, result == CUDA_SUCCESS);
    got.bytes = bound;  // until the pool says what it reserves
    return result;
  };
  request.upper_bound = stream_pools_.upper_bound(*pool, bytes);
  Obtained obtained;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (async_.deferred_bytes(device) >= bytes && async_.idle_bytes(device) < bytes) {
    async_.collect(device);  // before the pool grows
  }
  ledger::Account &account = ledger_.account(device);
  if (account.available() < request.upper_bound) {  // near the limit
    // From what the pool has, where its cap keeps it from growing beyond the limit; else from what is left of that once
    // there is room for it to grow.
    const BlockPools::SlabInTransit holding(pools_, device);
    const std::uint64_t rest = account.available();
    if (async_.idle_bytes(device) >= bytes && async_.is_capped(device) &&
        account.reserve(rest, ledger::Effort::kAtOnce) == ledger::ReserveOutcome::granted) {
      if (account.charged() >= account.limit() && stream_pools_.is_alone(*pool, rest)) {
        result = take(rest, obtained);
      }
      if (result != CUDA_SUCCESS) {
        account.release(rest);
      }
    }
    if (result != CUDA_SUCCESS && rest < request.upper_bound && request.upper_bound <= account.limit()) {
      stream_pools_.trim_by(request.api, *pool, request.upper_bound - rest);
    }
  }
  if (result != CUDA_SUCCESS) {
    result = admit(
        request, where, [&](Obtained &got) { return take(request.upper_bound, got); }, undo, obtained);
  }
  return result == CUDA_SUCCESS
             ? enter_from(pool, request, where, where.context, bytes, undo, obtained.address, address)
             : result;
}

// One allocation and its free. What it keeps is what the driver keeps: up to the release threshold.
void Policy::preallocate_async(const Request &request, const Contexts::Current &where,
                               const StreamPools::PoolRef &pool) {
  if (!async_.begin_preallocation(where.device)) {
    return;
  }
  const Preallocation plan = devices_.async_preallocation_on(where.device);
  ledger::Account &account = ledger_.account(where.device);
  std::uint64_t bytes = plan.bytes;
  if (!plan.exact) {
    const std::uint64_t free_now = really_free().value_or(UINT64_MAX);
    bytes = std::min({bytes, account.available(), free_now - std::min(free_now, plan.headroom)});
    const std::uint64_t bound = stream_pools_.upper_bound(*pool, bytes);
    if (bound > std::min(account.available(), free_now)) {  // one step of the pool less fits
      bytes = bound - stream_pools_.upper_bound(*pool, 1);
    }
  }
  CUresult result = CUDA_SUCCESS;
  while (bytes >= std::max<std::uint64_t>(1, plan.exact ? 0 : request.upper_bound)) {
    const std::uint64_t bound = stream_pools_.upper_bound(*pool, bytes);
    result = CUDA_ERROR_OUT_OF_MEMORY;
    if (account.reserve(bound) == ledger::ReserveOutcome::granted) {
      stream_pools_.begin(*pool, bound);
      result = async_.preallocate(where.device, where.context, bytes);
      stream_pools_.finish(*pool, bound, result == CUDA_SUCCESS);
      if (result == CUDA_SUCCESS) {
        stream_pools_.block_ended(*pool);
      } else {
        account.release(bound);
      }
    }
    if (result == CUDA_SUCCESS || plan.exact || result != CUDA_ERROR_OUT_OF_MEMORY) {
      break;
    }
    bytes = nine_tenths(bytes);
  }
  if (plan.exact && result != CUDA_SUCCESS) {
    events::say("mode async: device " + std::to_string(where.device) + ": " + std::to_string(bytes) +
                " bytes cannot be preallocated (error " + std::to_string(result) + ")");
  }
  if (const std::uint64_t missing = stream_pools_.settle(request.api, *pool); missing > 0) {
    account.charge(missing);
    stream_pools_.add(request.api, *pool, missing);
    stream_pools_.trim(request.api, where.device);
  }
}

// Ends now; the driver gets it once the device is through with it.
CUresult Policy::defer_free(CUdeviceptr address, const Block &block) {
  const CUresult state = pools_.state_of_caller();
  if (state != CUDA_SUCCESS) {
    return state;
  }
  return async_.defer(block.device, {address, block.size, block.context}) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Policy::finish_deferred(const char *api, int device) {
  if (options_.synchronous_free) {
    return async_.drain(api, device);
  }
  async_.settle(device);
  return CUDA_SUCCESS;
}

// The live block of mode async around an address.
std::optional<Block> Policy::async_block_at(CUdeviceptr address) {
  CUdeviceptr base = 0;
  if (!options_.async || !real.cuPointerGetAttribute.present() ||
      real.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  std::optional<Block> block = book_.find(base);
  return block && async_.owns(block->pool) ? block : std::nullopt;
}

CUresult Policy::change_peer(CUcontext peer, bool enabled, const std::function<CUresult()> &act) {
  describe();
  const CUresult result = act();
  if (result == CUDA_SUCCESS && options_.async) {
    const Contexts::Current where = contexts_.current();
    if (const ContextRef other = contexts_.find(peer); where.error == CUDA_SUCCESS && other != nullptr) {
      async_.peer_changed(where.device, other->device, enabled);
    }
  }
  return result;
}

}  // namespace ration::policy
