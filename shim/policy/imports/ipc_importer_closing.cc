// When the owners of what was closed here may use it again: the half of IpcImporter that asks the device.
// Layer: policy.
#include "base/clock.h"
#include "policy/imports/ipc_importer.h"

#include "base/wait.h"

namespace ration::policy {

// Covers all that was closed until now. False: a capture, or the driver, keeps that from being told.
bool IpcImporter::take_moment() {
  for (Waiter waiter;;) {
    CUresult error = CUDA_SUCCESS;
    const FenceTracker::Taken taken = fences_.take(moment_, error);
    if (taken != FenceTracker::Taken::ending) {
      return taken == FenceTracker::Taken::taken;
    }
    waiter.pause();  // the driver answers soon whether the context is gone
  }
}

void IpcImporter::look() noexcept try {
  const CaptureExclusion undisturbed(fences_.captures());
  if (covered_.empty() && !closed_.empty() && FenceTracker::can_tell() && take_moment()) {
    covered_.swap(closed_);
  }
  if (!covered_.empty() && fences_.query(moment_) == CUDA_SUCCESS) {
    fences_.recycle(moment_);
    covered_.clear();
  }
  owes_.store(!covered_.empty() || !closed_.empty());
} catch (...) {  // no memory of the host: another time
}

void IpcImporter::look_again() noexcept {
  if (const ReentrantGate turn(turn_, ReentrantGate::Patience::none); turn) {
    look();
  }
}

// Bounded, because what runs on the device may itself wait for this thread. Where the driver has no events only waiting
// tells.
void IpcImporter::wait_briefly() noexcept {
  const std::uint64_t start = now_ns();
  for (Backoff backoff;;) {
    look();
    if (!owes_.load() || covered_.empty() || now_ns() - start > kBrieflyNs) {
      return;
    }
    if (fences_.by_events()) {
      backoff.sleep();
    } else if (fences_.wait(moment_) != CUDA_SUCCESS) {
      return;
    }
  }
}

}  // namespace ration::policy
