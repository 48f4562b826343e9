// Contexts come and go; what goes takes its memory along. Every version that the driver exports.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::kAbsent;
using ration::policy::Policy;

namespace {

// One call that gains a context: `slot` with `rest`, whose first parameter receives the handle; `note` is told of it.
template <class Slot, class Note, class... Rest>
CUresult gain(const Slot &slot, CUcontext *context, const Note &note, Rest... rest) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto act = [&] { return slot(context, rest...); };
  return forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      note(policy, *context);
    }
    return result;
  });
}

auto created_on(CUdevice device) {
  return [device](Policy &policy, CUcontext context) { policy.context_created(context, device); };
}

template <class Slot, class Which, class Method>
CUresult end(const Slot &slot, const char *api, Which which, Method method) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto act = [&] { return slot(which); };
  return forwarding(act, [&](Policy &policy) { return (policy.*method)(api, which, act); });
}

}  // namespace

extern "C" {

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return gain(real.cuCtxCreate, pctx, created_on(dev), flags, dev);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return gain(real.cuCtxCreate_v2, pctx, created_on(dev), flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  return gain(real.cuCtxCreate_v3, pctx, created_on(dev), paramsArray, numParams, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
  return gain(real.cuCtxCreate_v4, pctx, created_on(dev), ctxCreateParams, flags, dev);
}

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  if (!real.cuGreenCtxCreate.present()) {
    return kAbsent;
  }
  const auto act = [&] { return real.cuGreenCtxCreate(phCtx, desc, dev, flags); };
  return forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      policy.green_created(*phCtx, dev);
    }
    return result;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return end(real.cuGreenCtxDestroy, "cuGreenCtxDestroy", hCtx, &Policy::destroy_green);
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
  return gain(
      real.cuCtxFromGreenCtx, pContext,
      [hCtx](Policy &policy, CUcontext context) { policy.green_converted(context, hCtx); }, hCtx);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
  return gain(
      real.cuCtxAttach, pctx, [](Policy &policy, CUcontext context) { policy.context_attached(context); }, flags);
}

CUresult cuCtxDetach(CUcontext ctx) {
  return end(real.cuCtxDetach, "cuCtxDetach", ctx, &Policy::detach_context);
}

CUresult cuCtxDestroy(CUcontext ctx) {
  return end(real.cuCtxDestroy, "cuCtxDestroy", ctx, &Policy::end_context);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return end(real.cuCtxDestroy_v2, "cuCtxDestroy_v2", ctx, &Policy::end_context);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
  if (!real.cuDevicePrimaryCtxRetain.present()) {
    return kAbsent;
  }
  const auto act = [&] { return real.cuDevicePrimaryCtxRetain(pctx, dev); };
  return forwarding(act, [&](Policy &policy) { return policy.retain_primary(pctx, dev, act); });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", dev, &Policy::release_primary);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2", dev, &Policy::release_primary);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", dev, &Policy::reset_primary);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset_v2", dev, &Policy::reset_primary);
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  if (!real.cuCtxEnablePeerAccess.present()) {
    return kAbsent;
  }
  const auto act = [&] { return real.cuCtxEnablePeerAccess(peerContext, Flags); };
  return forwarding(act, [&](Policy &policy) { return policy.change_peer(peerContext, true, act); });
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  if (!real.cuCtxDisablePeerAccess.present()) {
    return kAbsent;
  }
  const auto act = [&] { return real.cuCtxDisablePeerAccess(peerContext); };
  return forwarding(act, [&](Policy &policy) { return policy.change_peer(peerContext, false, act); });
}

}  // extern "C"
