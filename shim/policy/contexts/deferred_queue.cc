#include "policy/contexts/deferred_queue.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/held.h"
#include "base/this_thread.h"
#include "base/wait.h"

namespace ration::policy {

void DeferredQueue::note_added(DeferredSize size) {
  open_size_.add(size);
  publish_open();
  unreclaim(size);
}

void DeferredQueue::note_reclaimed(DeferredSize size) {
  blocks_.fetch_sub(size.blocks, std::memory_order_relaxed);
  bytes_.fetch_sub(size.bytes, std::memory_order_relaxed);
  reclaimed_.fetch_add(size.blocks);
}

void DeferredQueue::unreclaim(DeferredSize size) {
  blocks_.fetch_add(size.blocks, std::memory_order_relaxed);
  bytes_.fetch_add(size.bytes, std::memory_order_relaxed);
}

void DeferredQueue::reopen(Items &items, DeferredSize size) {
  open_.splice(open_.begin(), items);
  open_size_.add(size);
  publish_open();
}

void DeferredQueue::each_list(FunctionRef<void(Items &, DeferredSize &)> visit) {
  visit(open_, open_size_);
  for (std::list<Epoch> *epochs : {&sealing_, &sealed_}) {
    for (Epoch &epoch : *epochs) {
      visit(epoch.items, epoch.size);
    }
  }
}

void DeferredQueue::publish_open() {
  unsealed_.store(open_size_.blocks, std::memory_order_relaxed);
  if (open_size_.blocks != 0) {
    fences_.note_unsealed();
  }
}

bool DeferredQueue::seals_before_work() {
  publish_open();
  if (open_size_.blocks == 0) {
    return false;
  }
  if (const std::uint64_t now = now_ns(); before_work_left_ == 0 && now - before_work_ns_ >= kBeforeWorkNs) {
    before_work_left_ = std::min((now - before_work_ns_) / kBeforeWorkNs, kMostBeforeWork);
    before_work_ns_ = now;
  }
  return before_work_left_ != 0 && before_work_left_-- != 0;
}

DeferredQueue::Epoch *DeferredQueue::begin_seal(Cleaned &cleaned) noexcept try {
  if (open_size_.blocks == 0) {
    return nullptr;
  }
  if (spare_.empty()) {
    spare_.emplace_back();
  }
  Epoch &epoch = spare_.front();
  epoch.queue = this;
  epoch.self = spare_.begin();
  epoch.sealer = this_thread();
  sealing_.splice(sealing_.end(), spare_, epoch.self);
  epoch.items.splice(epoch.items.end(), open_);
  epoch.size = std::exchange(open_size_, {});
  publish_open();
  note_seal(Seal::begun);
  held::note(leave_seal, &epoch);
  return &epoch;
} catch (...) {  // no host memory, so everything stays open
  cleaned.error = CUDA_ERROR_OUT_OF_MEMORY;
  return nullptr;
}

void DeferredQueue::finish_seal(Epoch &epoch, Cleaned &cleaned) {
  CUresult error = CUDA_SUCCESS;
  const FenceTracker::Taken taken = fences_.take(epoch.fence, error, device_);
  if (!held::forget(leave_seal, &epoch)) {
    return;  // left by longjmp: its payloads are open again
  }
  Guard guard(mutex_);
  if (taken == FenceTracker::Taken::taken) {
    wake_waiters();  // not after a refusal: if this thread waits itself, it would never sleep
    const auto later = std::find_if(sealed_.begin(), sealed_.end(),
                                    [&](const Epoch &other) { return other.fence.number > epoch.fence.number; });
    sealed_.splice(later, sealing_, epoch.self);
    note_seal(Seal::taken);
    return;
  }
  drop_seal(epoch);
  cleaned.capturing |= taken == FenceTracker::Taken::capturing;
  cleaned.ending |= taken == FenceTracker::Taken::ending;
  if (taken == FenceTracker::Taken::failed) {
    cleaned.error = error;
  }
}

void DeferredQueue::drop_seal(Epoch &epoch) {
  reopen(epoch.items, epoch.size);
  spare_.splice(spare_.end(), sealing_, epoch.self);
  note_seal(Seal::refused);
}

void DeferredQueue::leave_seal(void *left) noexcept {
  auto &epoch = *static_cast<Epoch *>(left);
  Fence fence;  // destroyed after the lock is released, because it may end contexts
  Guard guard(epoch.queue->mutex_);
  fence = std::exchange(epoch.fence, {});
  epoch.queue->drop_seal(epoch);
  wake_waiters();
}

void DeferredQueue::leave_use(void *left) noexcept {
  auto &epoch = *static_cast<Epoch *>(left);
  Guard guard(epoch.queue->mutex_);
  --epoch.users;
  wake_waiters();
}

DeferredQueue::Epoch *DeferredQueue::use(Epoch &epoch) {
  ++epoch.users;
  held::note(leave_use, &epoch);
  return &epoch;
}

DeferredQueue::Epoch *DeferredQueue::use_newest(std::uint64_t up_to) {
  Guard guard(mutex_);
  const auto found = std::find_if(sealed_.rbegin(), sealed_.rend(),
                                  [&](const Epoch &epoch) { return !epoch.passed && epoch.fence.number <= up_to; });
  return found == sealed_.rend() ? nullptr : use(*found);
}

void DeferredQueue::note_answer(Epoch &epoch, CUresult answer, Cleaned &cleaned) {
  if (answer != CUDA_SUCCESS && answer != CUDA_ERROR_NOT_READY) {
    cleaned.error = answer;
  }
  const bool used = held::forget(leave_use, &epoch);
  Guard guard(mutex_);
  epoch.users -= used ? 1 : 0;
  epoch.passed |= used && answer == CUDA_SUCCESS;
}

// `refused`: the user refused payloads of an epoch that has passed.
bool DeferredQueue::reclaim_some(Cleaned &cleaned, bool &refused) {
  Fence over;
  {
    Guard guard(mutex_);
    refused = false;
    auto epoch = sealed_.begin();
    for (;; ++epoch) {
      if (epoch == sealed_.end()) {
        return false;
      }
      if (!epoch->passed) {
        continue;
      }
      if (!epoch->items.empty() && reclaim(epoch->items, cleaned)) {
        return true;
      }
      refused |= !epoch->items.empty();
      if (epoch->items.empty() && epoch->users == 0) {
        break;
      }
    }
    over = std::exchange(epoch->fence, {});
    epoch->passed = false;
    spare_.splice(spare_.end(), sealed_, epoch);
  }
  fences_.recycle(over);
  return true;
}

void DeferredQueue::poll(Cleaned &cleaned) {
  for (CUresult answer = CUDA_SUCCESS; answer == CUDA_SUCCESS;) {
    Epoch *oldest = nullptr;
    {
      Guard guard(mutex_);
      const auto found = std::find_if(sealed_.begin(), sealed_.end(), [](const Epoch &each) { return !each.passed; });
      if (found == sealed_.end()) {
        break;
      }
      oldest = use(*found);
    }
    answer = fences_.query(oldest->fence);
    note_answer(*oldest, answer, cleaned);
  }
  for (bool refused = false; reclaim_some(cleaned, refused);) {
  }
}

DeferredQueue::Cleaned DeferredQueue::collect(Sealing sealing) noexcept {
  Cleaned cleaned;
  Epoch *fresh = nullptr;
  {
    Guard guard(mutex_);
    gather();
    if ((open_size_.blocks == 0 && sealed_.empty()) || (sealing == Sealing::before_work && !seals_before_work())) {
      return cleaned;
    }
    if (sealing != Sealing::worthwhile) {
      fresh = begin_seal(cleaned);
    }
  }
  const CaptureExclusion exclusion(fences_.captures());
  if (fresh != nullptr) {
    finish_seal(*fresh, cleaned);
  }
  poll(cleaned);
  if (sealing != Sealing::worthwhile || cleaned.blocks > 0) {
    return cleaned;
  }
  {
    Guard guard(mutex_);
    fresh = worth_sealing() ? begin_seal(cleaned) : nullptr;
  }
  if (fresh != nullptr) {
    finish_seal(*fresh, cleaned);
    poll(cleaned);
  }
  return cleaned;
}

// Waits for an epoch that the caller uses, then reclaims with others. With `seen`, polls until reclaimed() has another
// value.
void DeferredQueue::wait_for(Epoch &epoch, std::optional<std::uint64_t> seen, Cleaned &cleaned) {
  const auto is_overtaken = [&] { return seen && reclaimed() != *seen; };
  cleaned.waited = true;
  const CUresult answer = seen ? fences_.poll(epoch.fence, is_overtaken) : fences_.wait(epoch.fence);
  note_answer(epoch, answer, cleaned);
  cleaned.capturing |= !seen && answer == CUDA_ERROR_NOT_READY;
  cleaned.others_cleaned |= answer == CUDA_SUCCESS || is_overtaken();
  bool refused = false;
  for (Waiter waiter;; waiter.pause()) {
    while (reclaim_some(cleaned, refused)) {
    }
    if (!refused) {
      return;
    }
  }
}

bool DeferredQueue::is_all_ordered() {
  const auto is_ordered = [](const Epoch &epoch) { return epoch.size.is_ordered(); };
  return fences_.by_events() && open_size_.is_ordered() && std::all_of(sealing_.begin(), sealing_.end(), is_ordered) &&
         std::all_of(sealed_.begin(), sealed_.end(), is_ordered);
}

bool DeferredQueue::is_sealed_elsewhere() {
  return std::any_of(sealing_.begin(), sealing_.end(),
                     [](const Epoch &epoch) { return epoch.sealer != this_thread(); });
}

// Does not wait for the device if others have reclaimed memory since the caller last looked for some, because the
// oldest epoch may be one that cannot end before the caller is served.
DeferredQueue::Cleaned DeferredQueue::wait(std::uint64_t seen) noexcept {
  Waiter waiter;
  // A Backoff, because each try takes a fence and wakes all waiters, including this thread.
  for (Backoff backoff;;) {
    Cleaned cleaned = collect(Sealing::always);
    if (cleaned.blocks > 0 || cleaned.error != CUDA_SUCCESS) {
      return cleaned;
    }
    Epoch *oldest = nullptr;
    bool in_other_hands = false;
    bool ordered = false;
    {
      Guard guard(mutex_);
      in_other_hands = in_hands_.load() != 0;
      cleaned.others_cleaned = reclaimed() != seen;
      if (cleaned.others_cleaned) {
        return cleaned;
      }
      in_other_hands |= sealed_.empty() ? is_sealed_elsewhere() : sealed_.front().passed;
      if (!in_other_hands && !sealed_.empty()) {
        oldest = use(sealed_.front());
        ordered = is_all_ordered();
      }
    }
    if (oldest != nullptr) {
      wait_for(*oldest, ordered ? std::optional(seen) : std::nullopt, cleaned);
      return cleaned;
    }
    if (in_other_hands) {
      waiter.pause();
    } else if (cleaned.ending) {
      backoff.sleep();
    } else {
      return cleaned;
    }
  }
}

// Returns once everything that was added before the call is sealed, or if the driver or a capture prevents that. A
// context that is being destroyed also prevents it, unless `waits_for_ends`; its end may wait for work.
DeferredQueue::Cleaned DeferredQueue::seal_all(bool waits_for_ends) {
  Cleaned all;
  for (Waiter waiter;; waiter.pause()) {
    Cleaned now = collect(Sealing::always);
    all.add(now);
    all.items.splice(all.items.end(), now.items);
    all.error = now.error;
    all.capturing = now.capturing;
    if (now.error != CUDA_SUCCESS || now.capturing) {
      return all;
    }
    Guard guard(mutex_);
    if (now.ending ? !waits_for_ends : !is_sealed_elsewhere()) {
      return all;
    }
  }
}

DeferredQueue::Cleaned DeferredQueue::drain() noexcept {
  Cleaned all = seal_all(true);
  const std::uint64_t last = fences_.now();
  while (all.error == CUDA_SUCCESS && !all.capturing) {
    Epoch *const newest = use_newest(last);
    if (newest == nullptr) {
      break;
    }
    wait_for(*newest, std::nullopt, all);  // a fence that has passed covers all fences before it
    const CaptureExclusion exclusion(fences_.captures());
    poll(all);
  }
  return all;
}

DeferredQueue::Cleaned DeferredQueue::wait_for_context(const Context &context) noexcept {
  Cleaned all = seal_all(false);
  Epoch *const newest = all.error == CUDA_SUCCESS && !all.capturing ? use_newest(fences_.now()) : nullptr;
  if (newest == nullptr) {
    return all;
  }
  const std::uint64_t number = newest->fence.number;
  CUresult answer = CUDA_SUCCESS;
  {
    const CaptureExclusion exclusion(fences_.captures());
    answer = fences_.query(newest->fence, &context);
  }
  if (answer == CUDA_ERROR_NOT_READY) {
    all.waited = true;
    answer = fences_.wait(newest->fence, &context);
  }
  note_answer(*newest, answer == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : answer, all);  // of one context only
  const CaptureExclusion exclusion(fences_.captures());
  poll(all);
  Guard guard(mutex_);
  for (const Epoch &epoch : sealed_) {
    all.left_bytes += !epoch.passed && epoch.fence.number <= number ? epoch.size.bytes : 0;
  }
  return all;
}

}  // namespace ration::policy
