// cuMemFreeAsync in both default-stream flavours: it also takes what cuMemAlloc gave.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::policy::Policy;

extern "C" CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  if (!real.cuMemFreeAsync.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuMemFreeAsync(dptr, hStream); };
  const CUstream stream = hStream != nullptr ? hStream : CU_STREAM_LEGACY;
  return ration::hooks::forwarding(
      act, [&](Policy &policy) { return policy.free_in_stream("cuMemFreeAsync", dptr, stream, act); });
}

extern "C" CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  if (!real.cuMemFreeAsync_ptsz.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuMemFreeAsync_ptsz(dptr, hStream); };
  const CUstream stream = hStream != nullptr ? hStream : CU_STREAM_PER_THREAD;
  return ration::hooks::forwarding(
      act, [&](Policy &policy) { return policy.free_in_stream("cuMemFreeAsync_ptsz", dptr, stream, act); });
}
