// Creation and destruction of contexts, whose memory goes with them: every version that the driver exports.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/context_life.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::policy::ContextLife;

namespace {

// Makes a call that obtains a context; on success, `note` gets the handle.
template <class Slot, class Note, class... Rest>
CUresult gain(const Slot &slot, const Note &note, CUcontext *context, Rest... rest) {
  return forwarding<ContextLife>(
      slot,
      [&](ContextLife &contexts, const auto &call) {
        const CUresult result = call();
        if (result == CUDA_SUCCESS) {
          note(contexts, *context);
        }
        return result;
      },
      context, rest...);
}

template <class Slot, class... Rest>
CUresult create(const Slot &slot, const char *api, CUdevice device, CUcontext *context, Rest... rest) {
  return forwarding<ContextLife>(
      slot, [=](ContextLife &contexts, const auto &call) { return contexts.create(api, context, device, call); },
      context, rest...);
}

template <class Slot, class Which, class Method>
CUresult end(const Slot &slot, const char *api, Which which, Method method) {
  return forwarding<ContextLife>(
      slot, [=](ContextLife &contexts, const auto &call) { return (contexts.*method)(api, which, call); }, which);
}

}  // namespace

extern "C" {

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return create(real.cuCtxCreate, "cuCtxCreate", dev, pctx, flags, dev);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return create(real.cuCtxCreate_v2, "cuCtxCreate_v2", dev, pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  return create(real.cuCtxCreate_v3, "cuCtxCreate_v3", dev, pctx, paramsArray, numParams, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
  return create(real.cuCtxCreate_v4, "cuCtxCreate_v4", dev, pctx, ctxCreateParams, flags, dev);
}

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return forwarding<ContextLife>(
      real.cuGreenCtxCreate,
      [=](ContextLife &contexts, const auto &call) { return contexts.create_green(phCtx, dev, call); }, phCtx, desc,
      dev, flags);
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return end(real.cuGreenCtxDestroy, "cuGreenCtxDestroy", hCtx, &ContextLife::destroy_green);
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
  const auto note = [=](ContextLife &contexts, CUcontext context) { contexts.green_converted(context, hCtx); };
  return gain(real.cuCtxFromGreenCtx, note, pContext, hCtx);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
  const auto note = [](ContextLife &contexts, CUcontext context) { contexts.attached(context); };
  return gain(real.cuCtxAttach, note, pctx, flags);
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
  return forwarding<ContextLife>(
      real.cuDevicePrimaryCtxRetain,
      [=](ContextLife &contexts, const auto &call) { return contexts.retain_primary(pctx, dev, call); }, pctx, dev);
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
  return forwarding<ContextLife>(
      real.cuCtxEnablePeerAccess,
      [=](ContextLife &contexts, const auto &call) { return contexts.change_peer(peerContext, true, call); },
      peerContext, Flags);
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return forwarding<ContextLife>(
      real.cuCtxDisablePeerAccess,
      [=](ContextLife &contexts, const auto &call) { return contexts.change_peer(peerContext, false, call); },
      peerContext);
}

}  // extern "C"
