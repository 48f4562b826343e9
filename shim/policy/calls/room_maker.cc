#include "policy/calls/room_maker.h"

#include "base/clock.h"
#include "base/wait.h"

namespace ration::policy {

using driver::real;

bool RoomMaker::wait_for_work(int device) noexcept try {
  Fence fence;
  CUresult error = CUDA_SUCCESS;
  FenceTracker::Taken taken{};
  {
    const CaptureExclusion exclusion(fences_.captures());
    taken = fences_.take(fence, error, device);
  }
  if (taken != FenceTracker::Taken::taken) {
    return false;
  }
  const CUresult passed = fences_.by_events() ? poll_briefly(fence) : fences_.wait(fence);
  // The driver's pools take note of finished work at the next synchronise call only.
  for (const Fence::Mark &mark : fence.marks) {
    if (const Pin pin(*mark.context); passed == CUDA_SUCCESS && mark.event != nullptr && pin) {
      const CurrentFor current(mark.context->handle);
      if (current) {
        real.cuEventSynchronize(mark.event);
      }
    }
  }
  fences_.recycle(fence);
  return passed == CUDA_SUCCESS;
} catch (...) {  // no memory of the host
  return false;
}

CUresult RoomMaker::poll_briefly(const Fence &fence) {
  const std::uint64_t start = now_ns();
  for (Backoff backoff;; backoff.sleep()) {
    const CaptureExclusion exclusion(fences_.captures());
    const CUresult passed = fences_.query(fence);
    if (passed != CUDA_ERROR_NOT_READY || now_ns() - start > kIdlePatienceNs) {
      return passed;
    }
  }
}

void RoomMaker::release_orphans(const char *api, int device) noexcept try {
  if (!stream_pools_.has_orphans(device)) {
    return;
  }
  if (const std::uint64_t orphans = stream_pools_.orphaned(device); fences_.is_idle(device)) {
    stream_pools_.release_orphans(api, device, orphans);
  }
} catch (...) {  // no memory of the host: they stay charged
}

bool RoomMaker::give_back(const Need &need, Patience patience) noexcept {
  const bool trimmed = stream_pools_.trim(need.api, need.device);
  return pools_.give_back_slabs(need, patience) || trimmed;
}

bool RoomMaker::make_room(const Need &need, Patience patience) noexcept try {
  const int device = need.device;
  const ledger::Account &account = ledger_.account(device);
  const auto enough = [&] { return account.available() >= need.bytes; };
  if (enough() || (pending_.poll(device) && enough())) {
    return true;
  }
  // The driver's pools keep what was freed in stream order until the stream reaches the free, and longer.
  if (stream_pools_.trim(need.api, device) && enough()) {
    return true;
  }
  // Nothing is disturbed or waited for where that cannot suffice.
  const std::uint64_t held = pools_.reclaimable(device);
  const std::uint64_t pending = pending_.bytes(device);
  const std::uint64_t idle = stream_pools_.idle(device);
  if (need.bytes > account.limit() || account.available() + held + pending + idle < need.bytes) {
    return false;
  }
  if (patience == Patience::briefly && pending > 0 && pending_.flush(device) && enough()) {
    return true;
  }
  if (const std::uint64_t orphans = stream_pools_.orphaned(device);
      patience == Patience::briefly && idle > 0 && wait_for_work(device)) {
    stream_pools_.release_orphans(need.api, device, orphans);
    stream_pools_.trim(need.api, device);
    if (enough()) {
      return true;
    }
  }
  // Slabs go back only where that suffices: the pool would have to take them again.
  return account.available() + held >= need.bytes && give_back(need, patience) && enough();
} catch (...) {
  return false;
}

}  // namespace ration::policy
