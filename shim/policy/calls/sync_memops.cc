#include "policy/calls/sync_memops.h"

#include "policy/calls/call_parts.h"
#include "policy/contexts/captures.h"

namespace ration::policy {

using driver::real;

bool SyncMemops::is_kept_here(CUdeviceptr address) {
  if (!real.cuStreamSynchronize.present()) {
    return false;
  }
  const ContextRef owner = parts_.pools.slabs.owner_of(address);
  return owner != nullptr ? has_granules(*owner) : parts_.imports.opener_in_granules(address) != nullptr;
}

bool SyncMemops::mark(CUdeviceptr address, bool marked) {
  if (marked && is_kept_here(address)) {
    keeps_any_.store(true, std::memory_order_relaxed);
  }
  const ContextRef owner = parts_.pools.slabs.owner_of(address);
  return owner != nullptr ? existing_pool(*owner)->blocks.mark(address, marked) : parts_.imports.mark(address, marked);
}

std::optional<bool> SyncMemops::is_marked(CUdeviceptr address) {
  const ContextRef owner = parts_.pools.slabs.owner_of(address);
  return owner != nullptr ? std::optional(existing_pool(*owner)->blocks.is_marked(address))
                          : parts_.imports.is_marked(address);
}

// The wait invalidates no capture: in relaxed mode none of another stream, and a stream that captures has nothing to
// wait for.
CUresult SyncMemops::wait(CUstream stream) {
  const RelaxedCapture relaxed;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = capture_status(stream, status);
  const bool captures =
      asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || (asked == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
  return captures ? CUDA_SUCCESS : real.cuStreamSynchronize(stream);
}

}  // namespace ration::policy
