#include "policy/contexts.h"

namespace ration::policy {

using driver::real;

Contexts::Current Contexts::current() {
  if (!real.cuCtxGetCurrent.present()) {
    return {unknown_, 0, CUDA_SUCCESS};  // everything is held to the first device's limit: the strictest reading
  }
  CUcontext handle = nullptr;
  const CUresult result = real.cuCtxGetCurrent(&handle);
  if (result != CUDA_SUCCESS || handle == nullptr) {
    return {unknown_, 0, result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_CONTEXT};
  }
  if (ContextRef known = find(handle)) {
    return {known, known->device, CUDA_SUCCESS};
  }
  CUdevice device = 0;
  if (real.cuCtxGetDevice.present()) {
    real.cuCtxGetDevice(&device);
  }
  ContextRef noted = note(handle, devices_.ordinal_of(device));
  return {noted, noted->device, CUDA_SUCCESS};
}

ContextRef Contexts::find(CUcontext handle) {
  Guard guard(mutex_);
  const auto found = contexts_.find(handle);
  return found != contexts_.end() ? found->second : nullptr;
}

ContextRef Contexts::note_locked(CUcontext handle, int device) {
  ContextRef &slot = contexts_[handle];
  if (slot == nullptr) {
    slot = std::make_shared<Context>();
    slot->handle = handle;
    slot->device = device;
    slot->number = ++last_number_;
  }
  return slot;
}

ContextRef Contexts::note(CUcontext handle, int device) {
  Guard guard(mutex_);
  return note_locked(handle, device);
}

ContextRef Contexts::note_created(CUcontext handle, int device) {
  Guard guard(mutex_);
  contexts_.erase(handle);
  references_.erase(handle);
  std::erase_if(primaries_, [handle](const auto &primary) { return primary.second == handle; });
  return note_locked(handle, device);
}

ContextRef Contexts::note_primary(CUcontext handle, int device) {
  Guard guard(mutex_);
  primaries_[device] = handle;
  return note_locked(handle, device);
}

ContextRef Contexts::primary_of(int device) {
  Guard guard(mutex_);
  const auto handle = primaries_.find(device);
  if (handle == primaries_.end()) {
    return nullptr;
  }
  const auto found = contexts_.find(handle->second);
  return found != contexts_.end() ? found->second : nullptr;
}

void Contexts::forget(const ContextRef &context, const char *api) {
  context->ended_by.store(api, std::memory_order_release);  // pairs with the acquires of whoever enters or ends a block
  Guard guard(mutex_);
  const auto found = contexts_.find(context->handle);
  if (found != contexts_.end() && found->second == context) {
    contexts_.erase(found);
    references_.erase(context->handle);
  }
}

int Contexts::add_reference(CUcontext handle, int change) {
  Guard guard(mutex_);
  const auto [count, is_new] = references_.try_emplace(handle, 1);  // cuCtxCreate leaves one
  (void)is_new;
  return count->second += change;
}

int Contexts::add_primary_reference(int device, int change) {
  Guard guard(mutex_);
  return primary_references_[device] += change;
}

}  // namespace ration::policy
