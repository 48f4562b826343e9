#include "policy/driver_pools/deferred_frees.h"

#include <iterator>
#include <utility>

#include "base/wait.h"

namespace ration::policy {

bool DeferredFrees::add(const DeferredBlock &block) noexcept try {
  std::list<DeferredBlock> one{block};
  Guard guard(mutex_);
  held_.emplace(block.address, block.bytes);
  open_.splice(open_.end(), one);
  open_blocks_.fetch_add(1, std::memory_order_relaxed);
  open_bytes_.fetch_add(block.bytes, std::memory_order_relaxed);
  bytes_.fetch_add(block.bytes, std::memory_order_relaxed);
  blocks_.fetch_add(1, std::memory_order_relaxed);
  return true;
} catch (...) {
  return false;
}

bool DeferredFrees::is_due(std::uint64_t most_bytes) const {
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine_intake.cc
  return most_bytes > 0;
#endif
  return open_blocks_.load(std::memory_order_relaxed) >= kBatchBlocks ||
         open_bytes_.load(std::memory_order_relaxed) >= most_bytes;
}

bool DeferredFrees::covers(CUdeviceptr address) {
  if (blocks() == 0) {
    return false;
  }
  Guard guard(mutex_);
  const auto behind = held_.upper_bound(address);
  return behind != held_.begin() && address - std::prev(behind)->first < std::prev(behind)->second;
}

void DeferredFrees::given_back(const DeferredBlock &block) noexcept {
  Guard guard(mutex_);
  held_.erase(block.address);
  returned_.fetch_add(1);
  wake_waiters();
  bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
  blocks_.fetch_sub(1, std::memory_order_relaxed);
}

void DeferredFrees::keep(std::list<DeferredBlock> &blocks) noexcept {
  Guard guard(mutex_);
  for (const DeferredBlock &block : blocks) {
    open_bytes_.fetch_add(block.bytes, std::memory_order_relaxed);
  }
  open_blocks_.fetch_add(blocks.size(), std::memory_order_relaxed);
  in_hands_.fetch_sub(blocks.size());
  open_.splice(open_.end(), blocks);
}

// Detached first: the moment that is taken then lies behind every free that it speaks for.
void DeferredFrees::seal(Looked &looked) {
  std::list<Epoch> fresh(1);
  Epoch &epoch = fresh.front();
  std::uint64_t bytes = 0;
  {
    Guard guard(mutex_);
    epoch.blocks.swap(open_);
    open_blocks_.store(0, std::memory_order_relaxed);
    bytes = open_bytes_.exchange(0, std::memory_order_relaxed);
  }
  if (epoch.blocks.empty()) {
    return;
  }
  CUresult error = CUDA_SUCCESS;
  const FenceTracker::Taken taken = fences_.try_take(epoch.moment, error);
  if (taken == FenceTracker::Taken::taken) {
    sealed_.splice(sealed_.end(), fresh);
    return;
  }
  looked.capturing |= taken == FenceTracker::Taken::capturing;
  looked.ending |= taken == FenceTracker::Taken::ending;
  if (taken == FenceTracker::Taken::failed) {
    looked.error = error;
  }
  Guard guard(mutex_);
  open_blocks_.fetch_add(epoch.blocks.size(), std::memory_order_relaxed);
  open_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  open_.splice(open_.begin(), epoch.blocks);
}

void DeferredFrees::take_passed(std::list<DeferredBlock> &clean, Looked &looked) {
  while (!sealed_.empty()) {
    Epoch &oldest = sealed_.front();
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine_intake.cc
    const CUresult answer = CUDA_SUCCESS;
#else
    const CUresult answer = fences_.query(oldest.moment);
#endif
    if (answer != CUDA_SUCCESS) {
      looked.error = answer == CUDA_ERROR_NOT_READY ? looked.error : answer;
      return;
    }
    in_hands_.fetch_add(oldest.blocks.size());
    clean.splice(clean.end(), oldest.blocks);
    fences_.recycle(oldest.moment);
    sealed_.pop_front();
  }
}

DeferredFrees::Looked DeferredFrees::collect(std::list<DeferredBlock> &clean, bool patient) noexcept {
  Looked looked;
  if (blocks() == 0) {
    return looked;
  }
  const ReentrantGate turn(turn_, patient ? ReentrantGate::Patience::wait : ReentrantGate::Patience::none);
  if (!turn || turn.is_nested()) {  // whose driver calls call back into us looks another time
    looked.busy = true;
    return looked;
  }
  const CaptureExclusion undisturbed(fences_.captures());
  try {
    seal(looked);
  } catch (...) {  // no memory of the host for an epoch: it stays open
    looked.error = CUDA_ERROR_OUT_OF_MEMORY;
  }
  take_passed(clean, looked);
  return looked;
}

void DeferredFrees::wait_for(const Fence &moment, std::list<DeferredBlock> &clean, Looked &looked) {
  looked.waited = true;
  const CUresult answer = fences_.wait(moment);
  if (answer == CUDA_SUCCESS) {
    const CaptureExclusion undisturbed(fences_.captures());
    take_passed(clean, looked);
  } else if (answer == CUDA_ERROR_NOT_READY) {
    looked.capturing = true;
  } else {
    looked.error = answer;
  }
}

DeferredFrees::Looked DeferredFrees::wait(std::list<DeferredBlock> &clean) noexcept {
  Looked looked = collect(clean, true);
  if (!clean.empty() || looked.error != CUDA_SUCCESS || looked.busy) {
    return looked;
  }
  const ReentrantGate turn(turn_);
  if (!sealed_.empty()) {
    wait_for(sealed_.front().moment, clean, looked);
  }
  return looked;
}

DeferredFrees::Looked DeferredFrees::drain(std::list<DeferredBlock> &clean) noexcept {
  Looked looked = collect(clean, true);
  Waiter waiter;
  while (looked.ending) {
    waiter.pause();
    looked = collect(clean, true);
  }
  if (looked.error != CUDA_SUCCESS || looked.capturing || looked.busy) {
    return looked;
  }
  const ReentrantGate turn(turn_);
  if (!sealed_.empty()) {
    wait_for(sealed_.back().moment, clean, looked);  // the newest speaks for all before it
  }
  return looked;
}

}  // namespace ration::policy
