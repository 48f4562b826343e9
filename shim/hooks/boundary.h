// Every hook crosses here: into the runtime, noexcept, once per thread.
// Layer: hooks (may include runtime, driver). Threads: any.
#pragma once

#include <atomic>
#include <utility>

#include "core_abi.h"
#include "driver/functions.h"
#include "runtime/runtime.h"

namespace ration::hooks {

// The front's door; set by the core's start before any hook can run. Racing first callers set the same one, and whoever
// reaches a hook got it from the front behind a start of its own process: relaxed.
extern std::atomic<const RationPreloadAbi *> given_preload;
inline const RationPreloadAbi *preload_abi() {
  return given_preload.load(std::memory_order_relaxed);
}

class Inside {
 public:
  Inside() : thread_(preload_abi()->thread()) { ++thread_->depth; }
  ~Inside() { --thread_->depth; }
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;
  // The call came from inside a call of ours: the driver through its own exports, or a callback of it.
  bool nested() const { return thread_->depth > 1; }

 private:
  RationThread *const thread_;
};

// Fails closed: takes device memory, so without a runtime the answer is "out of memory". `body` gets the policy; nested
// calls go straight to `real`, their bytes are the outer call's.
template <class Real, class Body>
CUresult allocating(const Real &real_call, Body &&body) noexcept {
  const Inside inside;
  if (inside.nested()) {
    return real_call();
  }
  try {
    runtime::Runtime *runtime = runtime::Runtime::get();
    return runtime != nullptr ? body(runtime->policy()) : CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Takes what is written down and not limited: without a runtime, and from inside another call, it is the driver's own.
template <class Real, class Body>
CUresult counting(const Real &real_call, Body &&body) noexcept {
  const Inside inside;
  runtime::Runtime *runtime = inside.nested() ? nullptr : runtime::Runtime::get();
  if (runtime == nullptr) {
    return real_call();
  }
  try {
    return body(runtime->policy());
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// Fails open: returns or reports memory, so without a runtime it is the driver's own. Nested calls too consult the
// books.
template <class Real, class Body>
CUresult forwarding(const Real &real_call, Body &&body) noexcept {
  const Inside inside;
  runtime::Runtime *runtime = runtime::Runtime::get();
  if (runtime == nullptr) {
    return real_call();
  }
  try {
    return body(runtime->policy());
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;  // the host's memory ran out: documented for every one of these calls
  }
}

// A hook whose function the driver lacks is reached by direct links only; it answers as the loader would have.
inline constexpr CUresult kAbsent = CUDA_ERROR_NOT_FOUND;

}  // namespace ration::hooks
