// When the owners of what was closed here may use it again: the half of Imports that asks the device.
// Layer: policy.
#include <sched.h>

#include "policy/clock.h"
#include "policy/imports.h"

namespace ration::policy {

// Covers all that was closed until now. False: a capture, or the driver, keeps that from being told.
bool Imports::take_moment() {
  for (;;) {
    CUresult error = CUDA_SUCCESS;
    const Progress::Taken taken = progress_.take(moment_, error);
    if (taken != Progress::Taken::ending) {
      return taken == Progress::Taken::taken;
    }
    sched_yield();  // the driver answers soon whether the context is gone
  }
}

void Imports::look() noexcept try {
  const Undisturbed undisturbed(progress_.captures());
  if (covered_.empty() && !closed_.empty() && Progress::can_tell() && take_moment()) {
    covered_.swap(closed_);
  }
  if (!covered_.empty() && progress_.query(moment_) == CUDA_SUCCESS) {
    progress_.recycle(moment_);
    covered_.clear();
  }
  owes_.store(!covered_.empty() || !closed_.empty());
} catch (...) {  // no memory of the host: another time
}

void Imports::look_again() noexcept {
  if (const Turn turn(turn_, Turn::Patience::none); turn) {
    look();
  }
}

// Bounded, because what runs on the device may itself wait for this thread. Where the driver has no events only waiting
// tells.
void Imports::wait_briefly() noexcept {
  const std::uint64_t start = now_ns();
  for (Naps naps;;) {
    look();
    if (!owes_.load() || covered_.empty() || now_ns() - start > kBrieflyNs) {
      return;
    }
    if (progress_.by_events()) {
      naps.nap();
    } else if (progress_.wait(moment_) != CUDA_SUCCESS) {
      return;
    }
  }
}

}  // namespace ration::policy
