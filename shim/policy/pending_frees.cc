#include "policy/pending_frees.h"

#include <algorithm>
#include <iterator>

namespace ration::policy {
namespace {

using driver::real;

// An event behind everything that is in `stream` now, or nullptr.
CUevent record_event(CUstream stream) {
  if (!real.cuEventCreate.present() || !real.cuEventRecord.present() || !real.cuEventQuery.present() ||
      !real.cuEventSynchronize.present() || !real.cuEventDestroy_v2.present()) {
    return nullptr;
  }
  CUevent event = nullptr;
  if (real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (real.cuEventRecord(event, stream) != CUDA_SUCCESS) {
    real.cuEventDestroy_v2(event);
    return nullptr;
  }
  return event;
}

}  // namespace

void PendingFrees::add(const ContextRef &context, int device, std::uint64_t bytes, CUstream stream) {
  const CUevent event = record_event(stream);
  if (event != nullptr && real.cuEventQuery(event) == CUDA_SUCCESS) {
    real.cuEventDestroy_v2(event);
    ledger_.account(device).release(bytes);
    return;
  }
  Guard guard(mutex_);
  pending_.push_back({context, device, bytes, event});
}

// Takes the device's entries out, so that the driver can be asked about them without the lock.
std::vector<PendingFrees::Pending> PendingFrees::take(int device) {
  std::vector<Pending> taken;
  Guard guard(mutex_);
  const auto others = std::stable_partition(pending_.begin(), pending_.end(), [device](const Pending &pending) {
    return pending.device != device || pending.event == nullptr;
  });
  std::move(others, pending_.end(), std::back_inserter(taken));
  pending_.erase(others, pending_.end());
  return taken;
}

bool PendingFrees::settle(int device, bool wait) {
  bool released = false;
  for (Pending &pending : take(device)) {
    CUresult passed = real.cuEventQuery(pending.event);
    if (passed == CUDA_ERROR_NOT_READY && wait) {
      passed = real.cuEventSynchronize(pending.event);
    }
    // Any other error is the context's own; its memory comes back with the context.
    if (passed == CUDA_SUCCESS) {
      real.cuEventDestroy_v2(pending.event);
      ledger_.account(pending.device).release(pending.bytes);
      released = true;
    } else if (!pending.context->gone.load(std::memory_order_acquire)) {
      Guard guard(mutex_);
      pending_.push_back(std::move(pending));
    } else {
      ledger_.account(pending.device).release(pending.bytes);
      released = true;
    }
  }
  return released;
}

void PendingFrees::drop(const ContextRef &context) {
  Guard guard(mutex_);
  const auto gone = std::partition(pending_.begin(), pending_.end(),
                                   [&](const Pending &pending) { return pending.context != context; });
  for (auto each = gone; each != pending_.end(); ++each) {
    ledger_.account(each->device).release(each->bytes);
  }
  pending_.erase(gone, pending_.end());
}

}  // namespace ration::policy
