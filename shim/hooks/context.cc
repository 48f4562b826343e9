// Contexts come and go; what goes takes its memory along. Every version that the driver exports.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::hooks::kAbsent;
using ration::policy::Policy;

namespace {

// One creation in any of its versions: `slot` with `arguments`, whose first one receives the handle.
template <class Slot, class... Rest>
CUresult create(const Slot &slot, CUdevice device, CUcontext *context, Rest... rest) {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto act = [&] { return slot(context, rest...); };
  return forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      policy.context_created(*context, device);
    }
    return result;
  });
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
  return create(real.cuCtxCreate, dev, pctx, flags, dev);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
  return create(real.cuCtxCreate_v2, dev, pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  return create(real.cuCtxCreate_v3, dev, pctx, paramsArray, numParams, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev) {
  return create(real.cuCtxCreate_v4, dev, pctx, ctxCreateParams, flags, dev);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags) {
  if (!real.cuCtxAttach.present()) {
    return kAbsent;
  }
  const auto act = [&] { return real.cuCtxAttach(pctx, flags); };
  return forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      policy.context_attached(*pctx);
    }
    return result;
  });
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
  return forwarding(act, [&](Policy &policy) {
    const CUresult result = act();
    if (result == CUDA_SUCCESS) {
      policy.primary_retained(*pctx, dev);
    }
    return result;
  });
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

}  // extern "C"
