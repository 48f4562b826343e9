// Memory shared with other processes. A pool's block gets a handle of our own, and a process that opens it gets only
// this block.
// Layer: hooks. Threads: any.
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/shared_blocks.h"

using ration::driver::real;
using ration::hooks::forwarding;
using ration::policy::SharedBlocks;

namespace {

// The only flag in cuda.h. The driver refuses any other, and a null `pdptr`.
constexpr unsigned kLazyEnablePeerAccess = 1;

template <class Slot>
CUresult open(const Slot &slot, CUdeviceptr *pdptr, const CUipcMemHandle &handle, unsigned flags) {
  return forwarding<SharedBlocks>(
      slot,
      [&](SharedBlocks &blocks, const auto &call) {
        const auto open_one = [&](const CUipcMemHandle &which, CUdeviceptr *address) {
          return slot(address, which, flags);
        };
        return pdptr == nullptr || flags != kLazyEnablePeerAccess ? call() : blocks.open(handle, open_one, pdptr);
      },
      pdptr, handle, flags);
}

}  // namespace

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr) {
  return forwarding<SharedBlocks>(
      real.cuIpcGetMemHandle,
      [=](SharedBlocks &blocks, const auto &call) { return blocks.share("cuIpcGetMemHandle", pHandle, dptr, call); },
      pHandle, dptr);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return open(real.cuIpcOpenMemHandle, pdptr, handle, Flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return open(real.cuIpcOpenMemHandle_v2, pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  return forwarding<SharedBlocks>(
      real.cuIpcCloseMemHandle, [=](SharedBlocks &blocks, const auto &call) { return blocks.close(dptr, call); }, dptr);
}

}  // extern "C"
