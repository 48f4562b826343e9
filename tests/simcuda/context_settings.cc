// Settings and properties of a context. Layer: driver.h. Threads: any.
#include <algorithm>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/device_attributes.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

constexpr int kLowestPriority = 0, kHighestPriority = -5;

template <class Body>
CUresult with_current(Body body) {
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  return body(lock, *context);
}

// A context by handle, or the current one for a null handle.
template <class Body>
CUresult with_context(CUcontext handle, Body body) {
  if (handle == nullptr) return with_current(body);
  Lock lock(driver().mutex);
  Context *context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return body(lock, *context);
}

template <class Value, class Read>
CUresult report(Value *value, Read read) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_current([&](Lock &, Context &context) {
    *value = read(context);
    return CUDA_SUCCESS;
  });
}

// For every thread that can be resident, beyond the stacks that the context was made with.
std::uint64_t stack_bytes(const Device &device, std::size_t value) {
  const auto threads =
      static_cast<std::uint64_t>(attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) *
      static_cast<std::uint64_t>(attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  return (std::max(value, default_limit(CU_LIMIT_STACK_SIZE)) - default_limit(CU_LIMIT_STACK_SIZE)) * threads;
}

bool settable(CUlimit limit) {
  return limit >= CU_LIMIT_STACK_SIZE && limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

}  // namespace

CUresult cuCtxGetDevice(CUdevice *device) {
  return report(device, [](Context &context) { return ordinal_of(*context.device); });
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context(ctx, [&](Lock &, Context &context) {
    *device = ordinal_of(*context.device);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context(ctx, [&](Lock &, Context &context) {
    *version = context.api_version;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int *flags) {
  return report(flags, [](Context &context) { return context.flags; });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_current([&](Lock &, Context &context) {
    context.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
  if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_context(ctx, [&](Lock &, Context &context) {
    *ctxId = context.id;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize(void) {
  return simcuda::cuCtxSynchronize_v2(nullptr);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return with_context(ctx, [](Lock &lock, Context &context) {
    if (const CUresult error = may_ask(context); error != CUDA_SUCCESS) return error;
    if (const CUresult error = may_act_unseen(); error != CUDA_SUCCESS) return error;
    drain(lock, context);
    after_waiting(lock);
    return context.health();
  });
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;  // H100, H200, driver 580.159
  if (!settable(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  return report(pvalue, [limit](Context &context) { return context.limits[limit]; });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  if (!settable(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  return with_current([&](Lock &, Context &context) {
    if (limit == CU_LIMIT_STACK_SIZE) {
      if (const CUresult error = resize_limit(*context.root, limit, stack_bytes(*context.device, value));
          error != CUDA_SUCCESS) {
        return error;
      }
    }
    context.limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig) {
  return report(pconfig, [](Context &context) { return context.cache; });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return with_current([&](Lock &, Context &context) {
    context.cache = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig) {
  return report(pConfig, [](Context &context) { return context.shared; });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return with_current([&](Lock &, Context &context) {
    context.shared = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
  return with_current([&](Lock &, Context &) {
    if (leastPriority != nullptr) *leastPriority = kLowestPriority;
    if (greatestPriority != nullptr) *greatestPriority = kHighestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxResetPersistingL2Cache(void) {
  return with_current([](Lock &, Context &) { return CUDA_SUCCESS; });
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_current([&](Lock &, Context &context) {
    Context *peer = find_context(peerContext);
    if (peer == nullptr || !peer->alive || peer->root == context.root) return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == context.device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return context.root->peers.insert(peer->root).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return with_current([&](Lock &, Context &context) {
    Context *peer = find_context(peerContext);
    if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context.root->peers.erase(peer->root) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

}  // namespace simcuda
