#include "policy/calls/room_maker.h"

namespace ration::policy {

using driver::real;

bool RoomMaker::wait_for_work() noexcept try {
  Fence fence;
  CUresult error = CUDA_SUCCESS;
  FenceTracker::Taken taken{};
  {
    const CaptureExclusion exclusion(fences_.captures());
    taken = fences_.take(fence, error);
  }
  if (taken != FenceTracker::Taken::taken) {
    return false;
  }
  const CUresult passed = fences_.wait(fence);
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

void RoomMaker::release_orphans(const char *api, int device) noexcept try {
  if (!stream_pools_.has_orphans(device)) {
    return;
  }
  if (const std::uint64_t orphans = stream_pools_.orphaned(device); fences_.is_idle()) {
    stream_pools_.release_orphans(api, device, orphans);
  }
} catch (...) {  // no memory of the host: they stay charged
}

bool RoomMaker::give_back(const char *api, int device) noexcept {
  const bool trimmed = stream_pools_.trim(api, device);
  return pools_.give_back_slabs(api, device) || trimmed;
}

bool RoomMaker::make_room(const char *api, int device, std::uint64_t bytes) noexcept try {
  const ledger::Account &account = ledger_.account(device);
  const auto enough = [&] { return account.available() >= bytes; };
  if (enough() || (pending_.poll(device) && enough()) || (pending_.flush(device) && enough())) {
    return true;
  }
  // The driver's pools keep what was freed in stream order until the stream reaches the free, and longer.
  if (stream_pools_.trim(api, device) && enough()) {
    return true;
  }
  if (const std::uint64_t orphans = stream_pools_.orphaned(device); stream_pools_.retains(device) && wait_for_work()) {
    stream_pools_.release_orphans(api, device, orphans);
    stream_pools_.trim(api, device);
    if (enough()) {
      return true;
    }
  }
  // Slabs go back only where that suffices: the pool would have to take them again.
  if (bytes > account.limit() || account.available() + pools_.reclaimable(device) < bytes) {
    return false;
  }
  return give_back(api, device) && enough();
} catch (...) {
  return false;
}

}  // namespace ration::policy
