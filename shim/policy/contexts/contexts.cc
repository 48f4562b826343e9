#include "policy/contexts/contexts.h"

#include <utility>

#include "base/this_thread.h"
#include "base/wait.h"

namespace ration::policy {

using driver::real;

Context::~Context() {
  close_to_hits();
  if (PoolOfContext *made = pool.load(std::memory_order_acquire)) {
    made->release();
  }
}

bool Context::pin() {
  const auto is_ending = [&] { return ending_.load() != 0 || ended_by.load(std::memory_order_acquire) != nullptr; };
  // Without this check, a thread that waits for the end and tries to pin between two pauses would wake itself by its
  // unpin().
  if (is_ending()) {
    return false;
  }
  pins_.fetch_add(1);
  held::note(drop_pin, this);
  if (is_ending()) {
    unpin();
    return false;
  }
  return true;
}

void Context::begin_end() {
  ending_.fetch_add(1);
  Waiter waiter;
  while (pins_.load() != 0) {
    waiter.pause();  // the thread that holds the pin is in one driver call of ours
  }
}

void Context::close_to_hits() noexcept {
  if (PoolOfContext *made = pool.load()) {
    made->close_to_hits();
  }
}

void CurrentFor::pop(void *) noexcept {
  CUcontext popped = nullptr;
  real.cuCtxPopCurrent_v2(&popped);
}

void CurrentFor::set_again(void *before) noexcept {
  real.cuCtxSetCurrent(static_cast<CUcontext>(before));
}

CurrentFor::CurrentFor(CUcontext context) {
  if (real.cuCtxGetCurrent.present() && real.cuCtxGetCurrent(&before_) == CUDA_SUCCESS && before_ == context) {
    return;
  }
  held::Release restore = nullptr;
  error_ = CUDA_ERROR_INVALID_CONTEXT;
  if (real.cuCtxPushCurrent_v2.present() && real.cuCtxPopCurrent_v2.present()) {
    restore = pop;
    error_ = real.cuCtxPushCurrent_v2(context);
  } else if (real.cuCtxSetCurrent.present() && real.cuCtxGetCurrent.present()) {
    restore = set_again;
    error_ = real.cuCtxSetCurrent(context);
  }
  if (error_ == CUDA_SUCCESS) {
    restore_ = restore;
    held::note(restore_, before_);
  }
}

CurrentFor::~CurrentFor() {
  if (restore_ != nullptr && held::forget(restore_, before_)) {
    restore_(before_);
  }
}

Contexts::Current Contexts::current() {
  if (!real.cuCtxGetCurrent.present()) {
    return {unknown_, 0, CUDA_SUCCESS};  // all is charged to the first device, the strictest interpretation
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
    // A handle can be current although its context has ended. No fence may wait for such a context.
    if (const CUresult alive = real.cuCtxGetDevice(&device); alive != CUDA_SUCCESS) {
      return {unknown_, 0, alive};
    }
  }
  ContextRef noted = note(handle, devices_.ordinal_of(device));
  return {noted, noted->device, CUDA_SUCCESS};
}

CUresult Contexts::state_of_caller() {
  CUcontext current = nullptr;
  const CUresult asked = real.cuCtxGetCurrent(&current);
  if (asked != CUDA_SUCCESS || (current != nullptr && find(current) != nullptr)) {
    return asked;
  }
  CUdevice device = 0;
  const CUresult answer = real.cuCtxGetDevice(&device);  // can fail only because of the thread's state
  const bool of_thread = answer == CUDA_ERROR_INVALID_CONTEXT || answer == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                         answer == CUDA_ERROR_NOT_INITIALIZED || answer == CUDA_ERROR_DEINITIALIZED;
  return of_thread ? answer : CUDA_SUCCESS;
}

ContextRef Contexts::find(CUcontext handle) {
  Guard guard(mutex_);
  auto found = contexts_.find(handle);
  if (found == contexts_.end() && !green_.empty()) {
    if (const auto green = green_.find(handle); green != green_.end()) {
      const auto primary = primaries_.find(green->second.device);
      found = primary != primaries_.end() ? contexts_.find(primary->second) : found;
    }
  }
  return found != contexts_.end() ? found->second : nullptr;
}

ContextRef Contexts::of_stream(CUstream stream) {
  CUcontext handle = nullptr;
  if (real.cuStreamGetCtx.present() && real.cuStreamGetCtx(stream, &handle) == CUDA_SUCCESS) {
    if (ContextRef context = find(handle)) {
      return context;
    }
  }
  return current().context;
}

void Contexts::note_green(CUcontext handle, CUgreenCtx green, int device) {
  Guard guard(mutex_);
  take_handle_away(handle);
  green_[handle] = {green, device};
}

void Contexts::forget_green(CUgreenCtx green) {
  Guard guard(mutex_);
  std::erase_if(green_, [green](const auto &entry) { return entry.second.green == green; });
}

bool Contexts::is_green(CUcontext handle) {
  Guard guard(mutex_);
  return green_.count(handle) != 0;
}

std::vector<ContextRef> Contexts::live() {
  std::vector<ContextRef> live;
  Guard guard(mutex_);
  live.reserve(contexts_.size());
  for (const auto &[handle, context] : contexts_) {
    live.push_back(context);
  }
  return live;
}

ContextRef Contexts::note_locked(CUcontext handle, int device, Seen seen) {
  ContextRef &slot = contexts_[handle];
  if (slot == nullptr) {
    slot = std::make_shared<Context>();
    slot->handle = handle;
    slot->device = device;
    slot->number = ++last_number_;
    if (seen == Seen::later) {
      slot->reach.add_for_ever(Reach::kAllDevices);  // what it did before, and by which functions, is unknown
    }
    if (first_device_ >= 0 && first_device_ != device) {
      several_devices_.store(true, std::memory_order_relaxed);
    }
    first_device_ = device;
  }
  return slot;
}

ContextRef Contexts::note(CUcontext handle, int device) {
  Guard guard(mutex_);
  return note_locked(handle, device, Seen::later);
}

// Separates a handle from its former owner, which has ended.
void Contexts::take_handle_away(CUcontext handle) {
  const auto found = contexts_.find(handle);
  if (found != contexts_.end()) {
    found->second->renamed.store(true);
    if (!found->second->is_ending()) {
      note_ended_unseen(found->second);
    }
    found->second->close_to_hits();
    contexts_.erase(found);
  }
}

ContextRef Contexts::note_created(CUcontext handle, int device) {
  Guard guard(mutex_);
  take_handle_away(handle);
  green_.erase(handle);
  references_.erase(handle);
  std::erase_if(primaries_, [handle](const auto &primary) { return primary.second == handle; });
  return note_locked(handle, device, Seen::from_birth);
}

ContextRef Contexts::note_primary(CUcontext handle, int device) {
  Guard guard(mutex_);
  primaries_[device] = handle;
  return note_locked(handle, device, Seen::from_birth);
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
  context->ended_by.store(api);  // pairs with threads that enter or end a block, or take one from the pool
  context->close_to_hits();
  Guard guard(mutex_);
  const auto found = contexts_.find(context->handle);
  if (found != contexts_.end() && found->second == context) {
    contexts_.erase(found);
    references_.erase(context->handle);
  }
}

void Contexts::forget_unseen(const ContextRef &context) noexcept {
  {
    Guard guard(mutex_);
    note_ended_unseen(context);
  }
  forget(context, "unknown");
}

void Contexts::note_ended_unseen(const ContextRef &context) noexcept {
  if (context->ended_by.load() != nullptr) {
    return;  // another thread saw its end
  }
  context->ended_by.store("unknown");
  try {
    ended_unseen_.push_back(context);
    has_ended_unseen_.store(true, std::memory_order_relaxed);
  } catch (...) {  // no host memory, so what it held stays charged
  }
}

std::vector<ContextRef> Contexts::take_ended_unseen() {
  Guard guard(mutex_);
  has_ended_unseen_.store(false, std::memory_order_relaxed);
  return std::exchange(ended_unseen_, {});
}

int Contexts::add_reference(CUcontext handle, int change) {
  Guard guard(mutex_);
  const auto [count, is_new] = references_.try_emplace(handle, 1);  // cuCtxCreate leaves one reference
  (void)is_new;
  return count->second += change;
}

int Contexts::add_primary_reference(int device, int change) {
  Guard guard(mutex_);
  return primary_references_[device] += change;
}

}  // namespace ration::policy
