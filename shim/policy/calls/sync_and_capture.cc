// Calls that move no memory but bear on it: captures, streams, synchronises, green contexts.
// Layer: policy: the half of Policy that watches.
#include "policy/calls/policy.h"

namespace ration::policy {

using driver::real;

// The one that the stream belongs to; a default stream is the current context's.
ContextRef Policy::context_of(CUstream stream) {
  CUcontext handle = nullptr;
  if (real.cuStreamGetCtx.present() && real.cuStreamGetCtx(stream, &handle) == CUDA_SUCCESS) {
    if (ContextRef context = contexts_.find(handle)) {
      return context;
    }
  }
  return contexts_.current().context;
}

CUresult Policy::begin_capture(CUstream stream, const std::function<CUresult()> &act) {
  const ContextRef context = context_of(stream);
  pools_.captures().begin_capture();
  const CUresult result = act();
  pools_.captures().finish_begin(stream, result, context);
  return result;
}

CUresult Policy::end_capture(CUstream stream, const std::function<CUresult()> &act) {
  const ContextRef context = stream == CU_STREAM_PER_THREAD ? context_of(stream) : nullptr;
  const std::uint64_t number = pools_.captures().number_of(stream, context);  // another thread may begin the next
  const CUresult result = act();
  pools_.captures().finish_end(number, result);
  imports_.settle();
  return result;
}

// Forgotten first: a handle that is gone must not be asked about. A destroy that the driver refuses leaves a capture
// that we no longer know of; the driver then refuses our look at that context, and nothing is cleaned.
CUresult Policy::destroy_stream(CUstream stream, const std::function<CUresult()> &act) {
  pools_.captures().forget(stream);
  return act();
}

CUresult Policy::synchronise(CUcontext handle, const std::function<CUresult()> &act) {
  if (!options_.pool) {
    return act();
  }
  CUcontext meant = handle;
  if (meant == nullptr && (!real.cuCtxGetCurrent.present() || real.cuCtxGetCurrent(&meant) != CUDA_SUCCESS)) {
    return act();
  }
  // A green context's covers only itself, and what it does not cover it does not clean.
  const ContextRef context = meant != nullptr && !contexts_.is_green(meant) ? contexts_.find(meant) : nullptr;
  const std::uint64_t began = pools_.before_synchronise();
  const CUresult result = act();
  if (result == CUDA_SUCCESS && context != nullptr) {
    FenceTracker::passed(*context, began);
  }
  imports_.settle();
  return result;
}

bool Policy::device_of(CUgreenCtx green, CUdevice &device) {
  Guard guard(greens_mutex_);
  const auto found = greens_.find(green);
  if (found == greens_.end()) {
    return false;
  }
  device = found->second;
  return true;
}

void Policy::green_created(CUgreenCtx green, CUdevice device) noexcept try {
  describe();
  {
    Guard guard(greens_mutex_);
    greens_[green] = device;
  }
  contexts_.add_primary_reference(devices_.ordinal_of(device), +1);
  // It holds its device's primary context, which the program may never have named.
  const Contexts::PrimaryGate turn(contexts_, devices_.ordinal_of(device));
  CUcontext primary = nullptr;
  if (real.cuDevicePrimaryCtxRetain.present() && real.cuDevicePrimaryCtxRelease_v2.present() &&
      real.cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS) {
    contexts_.note_primary(primary, devices_.ordinal_of(device));
    real.cuDevicePrimaryCtxRelease_v2(device);
  }
} catch (...) {  // out of memory of the host: its allocations are refused as those of an unknown context
}

void Policy::green_converted(CUcontext context, CUgreenCtx green) noexcept try {
  CUdevice device = 0;
  bool known = device_of(green, device);
  if (!known && real.cuCtxGetDevice.present()) {
    const CurrentFor current(context);
    known = current && real.cuCtxGetDevice(&device) == CUDA_SUCCESS;
  }
  if (known) {
    contexts_.note_green(context, green, devices_.ordinal_of(device));
  }
} catch (...) {  // as above
}

CUresult Policy::destroy_green(const char *api, CUgreenCtx green, const std::function<CUresult()> &act) {
  CUdevice device = 0;
  const bool known = device_of(green, device);
  const Contexts::PrimaryGate turn(contexts_, devices_.ordinal_of(device));
  // It lets go of the primary context: should it have been the last, that one ends and its memory with it.
  const CUresult result = known ? release_primary(api, device, act) : act();
  if (result == CUDA_SUCCESS) {
    contexts_.forget_green(green);
    Guard guard(greens_mutex_);
    greens_.erase(green);
  }
  return result;
}

}  // namespace ration::policy
