// Creating, attaching and destroying contexts, in every exported version. Layer: driver.h. Threads: any.
#include "implemented.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

CUresult create(CUcontext *pctx, unsigned int flags, CUdevice dev, unsigned api_version) {
  Device *device = nullptr;
  if (pctx == nullptr || (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = device_of(dev, &device); error != CUDA_SUCCESS) return error;
  Lock lock(driver().mutex);
  auto context = std::make_unique<Context>();
  context->device = device;
  context->flags = flags;
  context->api_version = api_version;
  if (const CUresult error = bring_up(lock, *context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = push_current(context.get()); error != CUDA_SUCCESS) {
    tear_down(lock, *context);
    return error;
  }
  *pctx = handle_of(context.get());
  driver().contexts.emplace(*pctx, std::move(context));
  return CUDA_SUCCESS;
}

CUresult destroy(Lock &lock, Context *context) {
  if (context == nullptr || context->primary || context->green()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  tear_down(lock, *context);
  if (current_or_null() == context) pop_current();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return create(pctx, flags, dev, 3010);
}
CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return create(pctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  if (numParams != 0 || paramsArray != nullptr) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(pctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
  if (ctxCreateParams == nullptr) return create(pctx, flags, dev, 3020);
  if (ctxCreateParams->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return simcuda::cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams, ctxCreateParams->numExecAffinityParams,
                                 flags, dev);
}

CUresult cuCtxDestroy(CUcontext ctx) {
  return simcuda::cuCtxDestroy_v2(ctx);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  Lock lock(driver().mutex);
  return destroy(lock, find_context(ctx));
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
  if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  ++context->attached;
  *pctx = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
  Lock lock(driver().mutex);
  Context *context = find_context(ctx);
  if (context == nullptr || context->primary || context->green()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (context->attached > 1) {
    --context->attached;
    return CUDA_SUCCESS;
  }
  return destroy(lock, context);
}

CUresult cuCtxPushCurrent(CUcontext ctx) {
  return simcuda::cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  const Lock lock(driver().mutex);
  Context *context = find_context(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive && !context->primary) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return push_current(context);
}

CUresult cuCtxPopCurrent(CUcontext *pctx) {
  return simcuda::cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx) {
  Context *const popped = pop_current();
  if (popped == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = handle_of(popped);
  return CUDA_SUCCESS;
}

// Replaces the top of the stack; 0 pops it.
CUresult cuCtxSetCurrent(CUcontext ctx) {
  const Lock lock(driver().mutex);
  if (ctx == nullptr) {
    pop_current();
    return CUDA_SUCCESS;
  }
  Context *context = find_context(ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive && !context->primary) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  pop_current();
  return push_current(context);
}

CUresult cuCtxGetCurrent(CUcontext *pctx) {
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = handle_of(current_or_null());
  return CUDA_SUCCESS;
}

}  // namespace simcuda
