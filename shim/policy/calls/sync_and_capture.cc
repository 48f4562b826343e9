#include "policy/calls/sync_and_capture.h"

#include <string>

#include "policy/calls/call_parts.h"

namespace ration::policy {

using driver::real;

CUresult SyncAndCapture::begin_capture(CUstream stream, DriverCall call) {
  const ContextRef context = parts_.contexts.of_stream(stream);
  parts_.captures.begin_capture();
  const CUresult result = call();
  parts_.captures.finish_begin(stream, result, context);
  return result;
}

void SyncAndCapture::begin_unknown_capture(const char *function) noexcept try {
  if (!parts_.captures.has_unknown() && parts_.captures.begin_unknown() && parts_.options.defers()) {
    events::say(
        std::string(function) +
        " is newer than this version of Ration: it may begin stream captures, so what the program frees is used "
        "again only when the program has synchronised its context");
  }
} catch (...) {  // no memory of the host for the line
}

CUresult SyncAndCapture::end_capture(CUstream stream, DriverCall call) {
  const ContextRef context = stream == CU_STREAM_PER_THREAD ? parts_.contexts.of_stream(stream) : nullptr;
  const std::uint64_t number = parts_.captures.number_of(stream, context);  // another thread may begin the next
  const CUresult result = call();
  parts_.captures.finish_end(number, result);
  parts_.imports.poll();
  return result;
}

// The stream is forgotten first, because the driver must not be asked about a handle that is gone. If the driver
// refuses the destroy, there may be a capture that we no longer know of. The driver then refuses our queries in that
// context, and nothing is cleaned.
CUresult SyncAndCapture::destroy_stream(CUstream stream, DriverCall call) {
  parts_.captures.forget(stream);
  return call();
}

CUresult SyncAndCapture::synchronise(CUcontext handle, DriverCall call) {
  CUcontext meant = handle;
  if (meant == nullptr && (!real.cuCtxGetCurrent.present() || real.cuCtxGetCurrent(&meant) != CUDA_SUCCESS)) {
    return call();
  }
  // A synchronise of a green context covers only that context, so it makes nothing else clean.
  const ContextRef context =
      meant != nullptr && !parts_.contexts.is_green(meant) ? parts_.contexts.find(meant) : nullptr;
  std::uint64_t began = 0;
  if (parts_.options.defers()) {
    parts_.async_pools.before_synchronise();
    began = parts_.pools.devices.before_synchronise();
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS && context != nullptr) {
    parts_.stream_pools.reconcile_all("cuCtxSynchronize", context->device);  // the driver's pools shrink here
    if (parts_.options.defers()) {
      FenceTracker::passed(*context, began);
      parts_.pools.gifts.after_synchronise(context->device);
    }
  }
  if (parts_.options.defers()) {
    parts_.imports.poll();
  }
  return result;
}

}  // namespace ration::policy
