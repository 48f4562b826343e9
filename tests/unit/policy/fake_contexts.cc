// The fake driver's contexts: created, primary and green ones.
#include "unit/policy/fake_driver.h"

namespace ration::test {

CUresult FakeDriver::create(CUcontext *context, int device) {
  const std::lock_guard lock(mutex_);
  if (free_handles_.empty()) {
    free_handles_.push_back(reinterpret_cast<CUcontext>(next_handle_ += 16));
  }
  *context = free_handles_.back();
  free_handles_.pop_back();
  contexts_[*context] = device;
  current = *context;
  return CUDA_SUCCESS;
}

void FakeDriver::end_context(CUcontext context) {
  for (auto each = blocks_.begin(); each != blocks_.end();) {
    if (each->second.context == context) {
      free_again_.emplace_back(each->first, each->second.bytes);
      each = blocks_.erase(each);
    } else {
      ++each;
    }
  }
  contexts_.erase(context);
  timeline.end(context);
  free_handles_.push_back(context);
}

CUresult FakeDriver::destroy(CUcontext context) {
  if (const auto hook = during_destroy) {
    hook(context);
  }
  {
    const std::lock_guard lock(mutex_);
    if (device_of(context) < 0) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    end_context(context);
  }
  if (const auto hook = after_destroy) {
    hook();
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::retain_primary(CUcontext *context, int device) {
  const std::lock_guard lock(mutex_);
  CUcontext &primary = primary_[device];
  if (primary == nullptr) {
    primary = reinterpret_cast<CUcontext>(next_handle_ += 16);
  }
  contexts_[primary] = device;
  ++retained_[device];
  *context = primary;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::release_primary(int device) {
  if (const auto hook = during_destroy) {
    hook(primary_[device]);
  }
  const std::lock_guard lock(mutex_);
  if (retained_[device] == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (--retained_[device] == 0) {
    end_context(primary_[device]);
    primary_[device] = nullptr;
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::reset_primary(int device) {
  const std::lock_guard lock(mutex_);
  if (primary_[device] != nullptr) {
    end_context(primary_[device]);
    primary_[device] = nullptr;
    retained_[device] = 0;
  }
  return CUDA_SUCCESS;
}

bool FakeDriver::primary_is_active(int device) const {
  const std::lock_guard lock(mutex_);
  return primary_[device] != nullptr;
}

CUresult FakeDriver::create_green(CUgreenCtx *green, int device) {
  CUcontext primary = nullptr;
  retain_primary(&primary, device);  // green contexts hold it
  const std::lock_guard lock(mutex_);
  *green = reinterpret_cast<CUgreenCtx>(next_handle_ += 16);
  const auto context = reinterpret_cast<CUcontext>(next_handle_ += 16);
  greens_[*green] = {device, context};
  contexts_[context] = device;
  timeline.make_green(context, primary);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::context_of(CUgreenCtx green, CUcontext *context) {
  const std::lock_guard lock(mutex_);
  const auto found = greens_.find(green);
  if (found == greens_.end()) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *context = found->second.context;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::destroy_green(CUgreenCtx green) {
  Green gone{};
  {
    const std::lock_guard lock(mutex_);
    const auto found = greens_.find(green);
    if (found == greens_.end()) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    gone = found->second;
    greens_.erase(found);
    contexts_.erase(gone.context);
  }
  timeline.end(gone.context);
  return release_primary(gone.device);
}

}  // namespace ration::test
