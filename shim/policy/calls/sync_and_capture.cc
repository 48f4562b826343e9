#include "policy/calls/sync_and_capture.h"

#include <string>

#include "events/diagnostics.h"

namespace ration::policy {

using driver::real;

CUresult SyncAndCapture::begin_capture(CUstream stream, DriverCall call) {
  const ContextRef context = contexts_.of_stream(stream);
  captures_.begin_capture();
  const CUresult result = call();
  captures_.finish_begin(stream, result, context);
  return result;
}

void SyncAndCapture::begin_unknown_capture(const char *function) noexcept try {
  if (!captures_.has_unknown() && captures_.begin_unknown() && defers_) {
    events::say(
        std::string(function) +
        " is newer than this version of Ration: it may begin stream captures, so what the program frees is used "
        "again only when the program has synchronised its context");
  }
} catch (...) {  // no memory of the host for the line
}

CUresult SyncAndCapture::end_capture(CUstream stream, DriverCall call) {
  const ContextRef context = stream == CU_STREAM_PER_THREAD ? contexts_.of_stream(stream) : nullptr;
  const std::uint64_t number = captures_.number_of(stream, context);  // another thread may begin the next
  const CUresult result = call();
  captures_.finish_end(number, result);
  imports_.poll();
  return result;
}

// Forgotten first: a handle that is gone must not be asked about. A destroy that the driver refuses leaves a capture
// that we no longer know of; the driver then refuses our look at that context, and nothing is cleaned.
CUresult SyncAndCapture::destroy_stream(CUstream stream, DriverCall call) {
  captures_.forget(stream);
  return call();
}

CUresult SyncAndCapture::synchronise(CUcontext handle, DriverCall call) {
  CUcontext meant = handle;
  if (meant == nullptr && (!real.cuCtxGetCurrent.present() || real.cuCtxGetCurrent(&meant) != CUDA_SUCCESS)) {
    return call();
  }
  // A green context's covers only itself, and what it does not cover it does not clean.
  const ContextRef context = meant != nullptr && !contexts_.is_green(meant) ? contexts_.find(meant) : nullptr;
  std::uint64_t began = 0;
  if (defers_) {
    async_.before_synchronise();
    began = pools_.devices.before_synchronise();
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS && context != nullptr) {
    stream_pools_.reconcile_all("cuCtxSynchronize", context->device);  // the driver's pools shrink here
    if (defers_) {
      FenceTracker::passed(*context, began);
      pools_.gifts.after_synchronise(context->device);
    }
  }
  if (defers_) {
    imports_.poll();
  }
  return result;
}

}  // namespace ration::policy
