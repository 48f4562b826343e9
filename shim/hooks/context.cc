// Contexts come and go; what goes takes its memory along. Every version that the driver exports.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/context_life.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::kAbsent;
using ration::policy::ContextLife;

namespace {

// One call that gains a context: `slot` with `rest`, whose first parameter receives the handle; `note` is told of it.
template <class Slot, class Note, class... Rest>
CUresult gain(const Slot &slot, CUcontext *context, const Note &note, Rest... rest) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto call = [&] { return slot(context, rest...); };
  return forwarding<ContextLife>(call, [&](ContextLife &contexts) {
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      note(contexts, *context);
    }
    return result;
  });
}

auto created_on(CUdevice device) {
  return [device](ContextLife &contexts, CUcontext context) { contexts.created(context, device); };
}

template <class Slot, class Which, class Method>
CUresult end(const Slot &slot, const char *api, Which which, Method method) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto call = [&] { return slot(which); };
  return forwarding<ContextLife>(call, [&](ContextLife &contexts) { return (contexts.*method)(api, which, call); });
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
  const auto call = [&] { return real.cuGreenCtxCreate(phCtx, desc, dev, flags); };
  return forwarding<ContextLife>(call, [&](ContextLife &contexts) {
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      contexts.green_created(*phCtx, dev);
    }
    return result;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return end(real.cuGreenCtxDestroy, "cuGreenCtxDestroy", hCtx, &ContextLife::destroy_green);
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
  return gain(
      real.cuCtxFromGreenCtx, pContext,
      [hCtx](ContextLife &contexts, CUcontext context) { contexts.green_converted(context, hCtx); }, hCtx);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
  return gain(
      real.cuCtxAttach, pctx, [](ContextLife &contexts, CUcontext context) { contexts.attached(context); }, flags);
}

CUresult cuCtxDetach(CUcontext ctx) {
  return end(real.cuCtxDetach, "cuCtxDetach", ctx, &ContextLife::detach);
}

CUresult cuCtxDestroy(CUcontext ctx) {
  return end(real.cuCtxDestroy, "cuCtxDestroy", ctx, &ContextLife::destroy);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return end(real.cuCtxDestroy_v2, "cuCtxDestroy_v2", ctx, &ContextLife::destroy);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
  if (!real.cuDevicePrimaryCtxRetain.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuDevicePrimaryCtxRetain(pctx, dev); };
  return forwarding<ContextLife>(call, [&](ContextLife &contexts) { return contexts.retain_primary(pctx, dev, call); });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", dev, &ContextLife::release_primary);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2", dev, &ContextLife::release_primary);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", dev, &ContextLife::reset_primary);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return end(real.cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset_v2", dev, &ContextLife::reset_primary);
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  if (!real.cuCtxEnablePeerAccess.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuCtxEnablePeerAccess(peerContext, Flags); };
  return forwarding<ContextLife>(call,
                                 [&](ContextLife &contexts) { return contexts.change_peer(peerContext, true, call); });
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  if (!real.cuCtxDisablePeerAccess.present()) {
    return kAbsent;
  }
  const auto call = [&] { return real.cuCtxDisablePeerAccess(peerContext); };
  return forwarding<ContextLife>(call,
                                 [&](ContextLife &contexts) { return contexts.change_peer(peerContext, false, call); });
}

}  // extern "C"
