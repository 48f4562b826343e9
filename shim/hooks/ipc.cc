// Memory shared with other processes: a pool's block has no handle of its own.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"

using ration::driver::real;
using ration::policy::Policy;

extern "C" CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
  if (!real.cuIpcGetMemHandle.present()) {
    return ration::hooks::kAbsent;
  }
  const auto act = [&] { return real.cuIpcGetMemHandle(pHandle, dptr); };
  return ration::hooks::forwarding(act, [&](Policy &policy) { return policy.share("cuIpcGetMemHandle", dptr, act); });
}
