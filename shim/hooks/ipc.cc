// Memory shared with other processes: a pool's block has a handle of ours, and opening one leads to that block alone.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/shared_blocks.h"

using ration::driver::real;
using ration::policy::SharedBlocks;

namespace {

// cuda.h: the only flags that there are. The driver refuses others, and an answer without a place.
constexpr unsigned kLazyEnablePeerAccess = 1;

template <class Real>
CUresult open(const Real &real_open, CUdeviceptr *pdptr, const CUipcMemHandle &handle, unsigned flags) {
  if (!real_open.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&](const CUipcMemHandle &which, CUdeviceptr *address) { return real_open(address, which, flags); };
  if (pdptr == nullptr || flags != kLazyEnablePeerAccess) {
    return call(handle, pdptr);
  }
  return ration::hooks::forwarding<SharedBlocks>(
      [&] { return call(handle, pdptr); }, [&](SharedBlocks &blocks) { return blocks.open(handle, call, pdptr); });
}

}  // namespace

extern "C" CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
  if (!real.cuIpcGetMemHandle.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuIpcGetMemHandle(pHandle, dptr); };
  return ration::hooks::forwarding<SharedBlocks>(
      call, [&](SharedBlocks &blocks) { return blocks.share("cuIpcGetMemHandle", pHandle, dptr, call); });
}

extern "C" CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return open(real.cuIpcOpenMemHandle, pdptr, handle, Flags);
}

extern "C" CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return open(real.cuIpcOpenMemHandle_v2, pdptr, handle, Flags);
}

extern "C" CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  if (!real.cuIpcCloseMemHandle.present()) {
    return ration::hooks::kAbsent;
  }
  const auto call = [&] { return real.cuIpcCloseMemHandle(dptr); };
  return ration::hooks::forwarding<SharedBlocks>(call, [&](SharedBlocks &blocks) { return blocks.close(dptr, call); });
}
