#include "policy/calls/async_memory.h"

#include <algorithm>
#include <string>

#include "events/diagnostics.h"

namespace ration::policy {

using driver::real;

CUresult AsyncMemory::take(const Request &request, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                           std::uint64_t bytes, std::uint64_t bound, Obtained &obtained) {
  stream_pools_.begin(*pool, bound);
  const CUresult result = async_.take(request.api, where.device, where.context, bytes, &obtained.address);
  stream_pools_.finish(*pool, bound, result == CUDA_SUCCESS);
  obtained.bytes = bound;  // until the pool says what it reserves
  return result;
}

CUresult AsyncMemory::take_near_limit(const Request &request, const Contexts::Current &where,
                                      const StreamPools::PoolRef &pool, std::uint64_t bytes, Obtained &obtained) {
  ledger::Account &account = ledger_.account(where.device);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  const BlockPools::SlabInTransit in_transit(pools_, where.device);
  const std::uint64_t rest = account.available();
  // With all that is left of the limit reserved, the pool's cap keeps it from growing beyond the limit.
  if (async_.idle_bytes(where.device) >= bytes && async_.is_capped(where.device) &&
      account.reserve(rest, ledger::Effort::kImmediate) == ledger::ReserveOutcome::granted) {
    if (account.charged() >= account.limit() && stream_pools_.is_alone(*pool, rest)) {
      result = take(request, where, pool, bytes, rest, obtained);
    }
    if (result != CUDA_SUCCESS) {
      account.release(rest);
    }
  }
  if (result != CUDA_SUCCESS && rest < request.upper_bound && request.upper_bound <= account.limit()) {
    stream_pools_.trim_by(request.api, *pool, request.upper_bound - rest);
  }
  return result;
}

CUresult AsyncMemory::allocate(Request request, const Contexts::Current &where, const StreamPools::PoolRef &pool,
                               CUdeviceptr *address) {
  request.kind = events::Kind::pool;
  const int device = where.device;
  preallocate(request, where, pool);
  async_.poll_if_due(device);
  const std::uint64_t bytes = request.upper_bound;
  const auto undo = [&](CUdeviceptr obtained) { return async_.put_back(where.context, obtained); };
  request.upper_bound = stream_pools_.upper_bound(*pool, bytes);
  Obtained obtained;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (async_.deferred_bytes(device) >= bytes && async_.idle_bytes(device) < bytes) {
    async_.collect(device);  // before the pool grows
  }
  if (ledger_.account(device).available() < request.upper_bound) {
    result = take_near_limit(request, where, pool, bytes, obtained);
  }
  if (result != CUDA_SUCCESS) {
    const auto grow = [&](Obtained &got) { return take(request, where, pool, bytes, request.upper_bound, got); };
    result = admission_.admit(request, where, grow, undo, obtained);
  }
  return result == CUDA_SUCCESS
             ? admission_.enter_pooled(pool, request, where, where.context, bytes, undo, obtained.address, address)
             : result;
}

// One allocation and its free. The driver keeps what was freed, up to the release threshold.
void AsyncMemory::preallocate(const Request &request, const Contexts::Current &where,
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
  if (const std::uint64_t missing = stream_pools_.reconcile(request.api, *pool); missing > 0) {
    account.charge(missing);
    stream_pools_.add(request.api, *pool, missing);
    stream_pools_.trim(request.api, where.device);
  }
}

CUresult AsyncMemory::defer(CUdeviceptr address, const Block &block) {
  const CUresult state = pools_.state_of_caller();
  if (state != CUDA_SUCCESS) {
    return state;
  }
  return async_.defer(block.device, {address, block.size, block.context}) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult AsyncMemory::finish_free(const char *api, int device) {
  if (synchronous_free_) {
    return async_.drain(api, device);
  }
  async_.poll_if_due(device);
  return CUDA_SUCCESS;
}

CUresult AsyncMemory::refuse_deferred() {
  journal_.count_failed_free();
  const CUresult state = pools_.state_of_caller();
  return state != CUDA_SUCCESS ? state : CUDA_ERROR_INVALID_VALUE;
}

std::optional<Block> AsyncMemory::block_at(CUdeviceptr address) {
  CUdeviceptr base = 0;
  if (!enabled_ || !real.cuPointerGetAttribute.present() ||
      real.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  std::optional<Block> block = books_.blocks.find(base);
  return block && owns(*block) ? block : std::nullopt;
}

}  // namespace ration::policy
