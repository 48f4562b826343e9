// What is freed but not yet free: payloads that wait until everything submitted before they were added has finished.
// Layer: policy/contexts. Threads: any; driver calls outside the lock. Owns: the payloads until they are reclaimed.
// Used by: the quarantine of the pools, the deferred frees of mode async, the imports that were closed.
//
// Why nothing is reclaimed early, and nothing twice:
// - A payload is in exactly one list at any time: open_, an epoch of sealing_, or an epoch of sealed_. All three change
//   under mutex_ only, so a thread that holds mutex_ sees every payload, also while a fence for it is being taken. A
//   user that drops the payloads of an ended context (each_list) therefore waits for no other thread.
// - Sealing detaches what is open under mutex_ before the fence is taken, so the fence covers every payload of its
//   epoch. While an epoch is in sealing_ its fence belongs to the sealing thread alone. A refused fence (a capture
//   runs, a context is being destroyed, the driver failed) returns the payloads to open_.
// - Once in sealed_, a fence is read-only. A thread that asks the driver about it counts in `users` first; an epoch
//   whose payloads are gone is recycled only at users == 0. `passed` is set once and never cleared before that.
// - Payloads are reclaimed from passed epochs under mutex_, as many at a time as the user chooses. The user may refuse
//   those whose free is not in the log yet. A sealed payload gains no such records, so a refusal ends.
// - Ended contexts: a fence treats them as passed (fence_tracker.h). Captures: a fence is taken between
//   Captures::enter and leave, or not at all, and queries run under CaptureExclusion.
// - wait() answers "nothing" only if, under mutex_, no epoch is sealed, no other thread is sealing one, no thread
//   holds payloads that it took out (in_hands_), and reclaimed() is still what the caller saw before it last looked
//   for memory. A thread counts in reclaimed_ before it leaves in_hands_, and wait() reads them in the other order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <utility>

#include "base/clock.h"
#include "base/held.h"
#include "base/lock.h"
#include "base/this_thread.h"
#include "base/wait.h"
#include "policy/contexts/fence_tracker.h"

namespace ration::policy {

struct DeferredSize {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ordered = 0;  // of the blocks: freed in stream order

  void add(DeferredSize other) { blocks += other.blocks, bytes += other.bytes, ordered += other.ordered; }
  void remove(DeferredSize other) { blocks -= other.blocks, bytes -= other.bytes, ordered -= other.ordered; }
  bool is_ordered() const { return ordered == blocks; }
};

template <class Payload>
class DeferredQueue {
 public:
  using Items = std::list<Payload>;  // moved about without memory of the host

  DeferredQueue(const DeferredQueue &) = delete;
  DeferredQueue &operator=(const DeferredQueue &) = delete;

  struct Cleaned : DeferredSize {
    CUresult error = CUDA_SUCCESS;  // of a driver call of ours; such a call cleans nothing
    bool capturing = false;         // open payloads cannot be sealed while a capture runs
    bool ending = false;            // nor while a context is being destroyed
    bool waited = false;            // for the device
    std::uint64_t left_bytes = 0;   // of wait_for_context(): what other contexts keep of all that was added before
    bool others_cleaned = false;    // another thread may have reclaimed some: look for memory again
    Items items;                    // those of them that the caller must finish, if the user hands them out
  };
  enum class Sealing {
    always,
    worthwhile,   // only if nothing was clean and worth_sealing(): each epoch costs driver calls
    due,          // only if is_due(); otherwise nothing is done at all
    before_work,  // unless there were many such seals
  };
  // The program synchronises: as many seals before work as in the beginning.
  void seal_finely() noexcept {
    Guard guard(mutex_);
    before_work_left_ = kMostBeforeWork;
  }
  bool has_unsealed() const { return unsealed_.load(std::memory_order_relaxed) != 0; }
  // Reclaims what is clean. Never waits for the device.
  Cleaned collect(Sealing sealing) noexcept;
  // The same; if nothing was clean, waits for the oldest epoch, unless reclaimed() is no longer `seen`. Where all was
  // freed in stream order, kIdlePatienceNs at most: the driver would not have waited in those frees, and the work
  // before them may wait for this call to return. If blocks, others_cleaned, error and capturing are all empty, nothing
  // is left to wait for.
  Cleaned wait(std::uint64_t seen) noexcept;
  // Waits until everything that was added before the call is clean.
  Cleaned drain() noexcept;
  // Waits as the driver's own free does: for what was submitted to `context` before the call. Reclaims what is clean
  // then. During a capture it waits for nothing.
  Cleaned wait_for_context(const Context &context) noexcept;

  // Added and not reclaimed yet; reclaimed so far.
  std::uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t reclaimed() const { return reclaimed_.load(); }

 protected:
  // `device`: where all payloads are, or kAllDevices.
  DeferredQueue(FenceTracker &fences, Rank rank, int device = FenceTracker::kAllDevices)
      : fences_(fences), mutex_(rank), fenced_device_(device) {}
  virtual ~DeferredQueue() = default;

  // Reclaims some of the clean `items`, into cleaned.items or for good (note_reclaimed); removes them from the list.
  // False: none of them may be reclaimed yet.
  virtual bool reclaim(Items &items, Cleaned &cleaned) REQUIRES(mutex_) = 0;
  // Moves to open_ what was freed elsewhere.
  virtual void gather() REQUIRES(mutex_) {}
  virtual bool worth_sealing() REQUIRES(mutex_) { return sealed_.empty(); }
  virtual bool is_due() REQUIRES(mutex_) { return true; }
  // After each change of what is open that a seal makes.
  enum class Seal { begun, taken, refused };
  virtual void note_seal(Seal) REQUIRES(mutex_) {}

  void note_added(DeferredSize size) REQUIRES(mutex_) {
    open_size_.add(size);
    publish_open();
    blocks_.fetch_add(size.blocks, std::memory_order_relaxed);
    bytes_.fetch_add(size.bytes, std::memory_order_relaxed);
  }
  void note_reclaimed(DeferredSize size) {
    blocks_.fetch_sub(size.blocks, std::memory_order_relaxed);
    bytes_.fetch_sub(size.bytes, std::memory_order_relaxed);
    reclaimed_.fetch_add(size.blocks);
  }
  // Payloads that count as reclaimed are in the user's hands once more.
  void unreclaim(DeferredSize size) REQUIRES(mutex_) {
    blocks_.fetch_add(size.blocks, std::memory_order_relaxed);
    bytes_.fetch_add(size.bytes, std::memory_order_relaxed);
  }
  // Of payloads that count as added already.
  void reopen(Items &items, DeferredSize size) REQUIRES(mutex_) {
    open_.splice(open_.begin(), items);
    open_size_.add(size);
    publish_open();
  }
  // Calls visit(items, size) with every list of payloads.
  template <class Visit>
  void each_list(const Visit &visit) REQUIRES(mutex_) {
    visit(open_, open_size_);
    for (std::list<Epoch> *epochs : {&sealing_, &sealed_}) {
      for (Epoch &epoch : *epochs) {
        visit(epoch.items, epoch.size);
      }
    }
  }

 private:
  struct Epoch {
    DeferredQueue *queue = nullptr;
    Items items;
    DeferredSize size;
    Fence fence;
    const void *sealer = nullptr;  // the thread that takes the fence
    int users = 0;                 // threads that ask the driver about the fence
    bool passed = false;
  };

  // Detaches what is open; nullptr: there is nothing, or no host memory for an epoch.
  Epoch *begin_seal(Cleaned &cleaned) noexcept REQUIRES(mutex_);
  typename std::list<Epoch>::iterator position_of(const Epoch &epoch) REQUIRES(mutex_);
  void drop_seal(Epoch &epoch) REQUIRES(mutex_);
  // What a thread does for an epoch across driver calls.
  static void leave_seal(void *epoch) noexcept;
  static void leave_use(void *epoch) noexcept;
  void finish_seal(Epoch &epoch, Cleaned &cleaned);
  void poll(Cleaned &cleaned);
  // Some epoch that has not passed, for a thread that will answer with note_answer; nullptr: there is none.
  Epoch *use(Epoch &epoch) REQUIRES(mutex_);
  Epoch *use_oldest();
  Epoch *use_newest(std::uint64_t up_to);
  Cleaned seal_all(bool waits_for_ends);
  std::uint64_t unpassed_bytes(std::uint64_t up_to);
  void note_answer(Epoch &epoch, CUresult answer, Cleaned &cleaned);
  void wait_for(Epoch &epoch, Cleaned &cleaned);
  void poll_for(Epoch &epoch, std::uint64_t seen, Cleaned &cleaned);
  void reclaim_all(Cleaned &cleaned);
  bool is_all_ordered() REQUIRES(mutex_);
  bool reclaim_some(Cleaned &cleaned, bool &refused);
  // By another thread: a driver call that takes a fence may call back into us.
  bool is_sealed_elsewhere() REQUIRES(mutex_);
  enum class Choice { wait, poll, look_again, in_other_hands, nothing };
  Choice choose(std::uint64_t seen, Epoch *&oldest);

 protected:
  FenceTracker &fences_;
  RankedMutex mutex_;
  const int fenced_device_;
  Items open_ GUARDED_BY(mutex_);
  DeferredSize open_size_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> in_hands_{0};  // blocks of Cleaned::items that the caller has not finished

 private:
  // A fence for each free before work costs more than one for a thousand: after so many only one in 10 ms.
  static constexpr std::uint64_t kMostBeforeWork = 64;
  static constexpr std::uint64_t kBeforeWorkNs = 10'000'000;
  void publish_open() REQUIRES(mutex_) {
    unsealed_.store(open_size_.blocks, std::memory_order_relaxed);
    if (open_size_.blocks != 0) {
      fences_.note_unsealed();
    }
  }
  bool seals_before_work() REQUIRES(mutex_) {
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

  std::uint64_t before_work_left_ GUARDED_BY(mutex_) = kMostBeforeWork;
  std::uint64_t before_work_ns_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> unsealed_{0};  // what open_size_ says, for threads without the lock
  std::list<Epoch> sealing_ GUARDED_BY(mutex_);
  std::list<Epoch> sealed_ GUARDED_BY(mutex_);  // oldest first
  std::list<Epoch> spare_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> reclaimed_{0};
};

template <class Payload>
typename DeferredQueue<Payload>::Epoch *DeferredQueue<Payload>::begin_seal(Cleaned &cleaned) noexcept try {
  if (open_size_.blocks == 0) {
    return nullptr;
  }
  if (spare_.empty()) {
    spare_.emplace_back();
  }
  sealing_.splice(sealing_.end(), spare_, spare_.begin());
  Epoch &epoch = sealing_.back();
  epoch.items.splice(epoch.items.end(), open_);
  epoch.queue = this;
  epoch.sealer = this_thread();
  epoch.size = std::exchange(open_size_, {});
  unsealed_.store(0, std::memory_order_relaxed);
  note_seal(Seal::begun);
  held::note(leave_seal, &epoch);
  return &epoch;
} catch (...) {  // everything stays open
  cleaned.error = CUDA_ERROR_OUT_OF_MEMORY;
  return nullptr;
}

template <class Payload>
void DeferredQueue<Payload>::finish_seal(Epoch &epoch, Cleaned &cleaned) {
  CUresult error = CUDA_SUCCESS;
  const FenceTracker::Taken taken = fences_.try_take(epoch.fence, error, fenced_device_);
  if (!held::forget(leave_seal, &epoch)) {
    return;  // open once more
  }
  Guard guard(mutex_);
  if (taken == FenceTracker::Taken::taken) {
    wake_waiters();  // not of a refusal: this thread may be waiting itself, and would not sleep
    const auto self = position_of(epoch);
    const auto later = std::find_if(sealed_.begin(), sealed_.end(),
                                    [&](const Epoch &other) { return other.fence.number > epoch.fence.number; });
    sealed_.splice(later, sealing_, self);
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

template <class Payload>
typename std::list<typename DeferredQueue<Payload>::Epoch>::iterator DeferredQueue<Payload>::position_of(
    const Epoch &epoch) {
  return std::find_if(sealing_.begin(), sealing_.end(), [&](const Epoch &each) { return &each == &epoch; });
}

template <class Payload>
void DeferredQueue<Payload>::drop_seal(Epoch &epoch) {
  reopen(epoch.items, epoch.size);
  spare_.splice(spare_.end(), sealing_, position_of(epoch));
  note_seal(Seal::refused);
}

template <class Payload>
void DeferredQueue<Payload>::leave_seal(void *left) noexcept {
  auto &epoch = *static_cast<Epoch *>(left);
  Fence fence;  // names contexts, whose ends are not for under the lock
  Guard guard(epoch.queue->mutex_);
  fence = std::exchange(epoch.fence, {});
  epoch.queue->drop_seal(epoch);
  wake_waiters();
}

template <class Payload>
void DeferredQueue<Payload>::leave_use(void *left) noexcept {
  auto &epoch = *static_cast<Epoch *>(left);
  Guard guard(epoch.queue->mutex_);
  --epoch.users;
  wake_waiters();
}

template <class Payload>
typename DeferredQueue<Payload>::Epoch *DeferredQueue<Payload>::use(Epoch &epoch) {
  ++epoch.users;
  held::note(leave_use, &epoch);
  return &epoch;
}

template <class Payload>
typename DeferredQueue<Payload>::Epoch *DeferredQueue<Payload>::use_oldest() {
  Guard guard(mutex_);
  const auto found = std::find_if(sealed_.begin(), sealed_.end(), [](const Epoch &epoch) { return !epoch.passed; });
  if (found == sealed_.end()) {
    return nullptr;
  }
  return use(*found);
}

template <class Payload>
typename DeferredQueue<Payload>::Epoch *DeferredQueue<Payload>::use_newest(std::uint64_t up_to) {
  Guard guard(mutex_);
  const auto found = std::find_if(sealed_.rbegin(), sealed_.rend(),
                                  [&](const Epoch &epoch) { return !epoch.passed && epoch.fence.number <= up_to; });
  if (found == sealed_.rend()) {
    return nullptr;
  }
  return use(*found);
}

template <class Payload>
void DeferredQueue<Payload>::note_answer(Epoch &epoch, CUresult answer, Cleaned &cleaned) {
  if (answer != CUDA_SUCCESS && answer != CUDA_ERROR_NOT_READY) {
    cleaned.error = answer;
  }
  const bool used = held::forget(leave_use, &epoch);
  Guard guard(mutex_);
  epoch.users -= used ? 1 : 0;
  epoch.passed |= used && answer == CUDA_SUCCESS;
}

// `refused`: payloads of an epoch that has passed may not be reclaimed yet.
template <class Payload>
bool DeferredQueue<Payload>::reclaim_some(Cleaned &cleaned, bool &refused) {
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

template <class Payload>
void DeferredQueue<Payload>::poll(Cleaned &cleaned) {
  for (CUresult answer = CUDA_SUCCESS; answer == CUDA_SUCCESS;) {
    Epoch *const epoch = use_oldest();
    if (epoch == nullptr) {
      break;
    }
    answer = fences_.query(epoch->fence);
    note_answer(*epoch, answer, cleaned);
  }
  for (bool refused = false; reclaim_some(cleaned, refused);) {
  }
}

template <class Payload>
typename DeferredQueue<Payload>::Cleaned DeferredQueue<Payload>::collect(Sealing sealing) noexcept {
  Cleaned cleaned;
  Epoch *fresh = nullptr;
  {
    Guard guard(mutex_);
    gather();
    if ((open_size_.blocks == 0 && sealed_.empty()) || (sealing == Sealing::due && !is_due()) ||
        (sealing == Sealing::before_work && !seals_before_work())) {
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

// For an epoch that the caller uses; takes part in reclaiming it.
template <class Payload>
void DeferredQueue<Payload>::wait_for(Epoch &epoch, Cleaned &cleaned) {
  cleaned.waited = true;
  const CUresult answer = fences_.wait(epoch.fence);
  note_answer(epoch, answer, cleaned);
  cleaned.capturing |= answer == CUDA_ERROR_NOT_READY;
  cleaned.others_cleaned |= answer == CUDA_SUCCESS;
  reclaim_all(cleaned);
}

template <class Payload>
void DeferredQueue<Payload>::poll_for(Epoch &epoch, std::uint64_t seen, Cleaned &cleaned) {
  cleaned.waited = true;
  const CUresult answer = fences_.poll(epoch.fence, [&] { return reclaimed() != seen; });
  note_answer(epoch, answer, cleaned);
  cleaned.others_cleaned |= answer == CUDA_SUCCESS || reclaimed() != seen;
  reclaim_all(cleaned);
}

template <class Payload>
void DeferredQueue<Payload>::reclaim_all(Cleaned &cleaned) {
  bool refused = false;
  for (Waiter waiter;; waiter.pause()) {
    while (reclaim_some(cleaned, refused)) {
    }
    if (!refused) {
      return;
    }
  }
}

template <class Payload>
bool DeferredQueue<Payload>::is_all_ordered() {
  const auto is_ordered = [](const Epoch &epoch) { return epoch.size.is_ordered(); };
  return fences_.by_events() && open_size_.is_ordered() && std::all_of(sealing_.begin(), sealing_.end(), is_ordered) &&
         std::all_of(sealed_.begin(), sealed_.end(), is_ordered);
}

template <class Payload>
bool DeferredQueue<Payload>::is_sealed_elsewhere() {
  return std::any_of(sealing_.begin(), sealing_.end(),
                     [](const Epoch &epoch) { return epoch.sealer != this_thread(); });
}

// Does not wait for the device if others reclaimed memory since the caller last looked for some: the oldest epoch may
// be one that cannot end before the caller is served.
template <class Payload>
typename DeferredQueue<Payload>::Choice DeferredQueue<Payload>::choose(std::uint64_t seen, Epoch *&oldest) {
  Guard guard(mutex_);
  const bool in_hands = in_hands_.load() != 0;
  if (reclaimed() != seen) {
    return Choice::look_again;
  }
  if (sealed_.empty()) {
    return in_hands || is_sealed_elsewhere() ? Choice::in_other_hands : Choice::nothing;
  }
  if (in_hands || sealed_.front().passed) {
    return Choice::in_other_hands;
  }
  oldest = use(sealed_.front());
  return is_all_ordered() ? Choice::poll : Choice::wait;
}

template <class Payload>
typename DeferredQueue<Payload>::Cleaned DeferredQueue<Payload>::wait(std::uint64_t seen) noexcept {
  Waiter waiter;
  // Each look takes a fence and wakes all waiters, this thread included.
  for (Backoff backoff;;) {
    Cleaned cleaned = collect(Sealing::always);
    if (cleaned.blocks > 0 || cleaned.error != CUDA_SUCCESS) {
      return cleaned;
    }
    Epoch *oldest = nullptr;
    switch (choose(seen, oldest)) {
      case Choice::look_again:
        cleaned.others_cleaned = true;
        return cleaned;
      case Choice::wait:
        wait_for(*oldest, cleaned);
        return cleaned;
      case Choice::poll:
        poll_for(*oldest, seen, cleaned);
        return cleaned;
      case Choice::nothing:
        if (!cleaned.ending) {
          return cleaned;
        }
        backoff.sleep();
        break;
      case Choice::in_other_hands:
        waiter.pause();
        break;
    }
  }
}

// Returns once everything that was added before the call is sealed, unless the driver or a capture prevents it; or a
// context that is being destroyed, whose end may wait for work.
template <class Payload>
typename DeferredQueue<Payload>::Cleaned DeferredQueue<Payload>::seal_all(bool waits_for_ends) {
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

template <class Payload>
typename DeferredQueue<Payload>::Cleaned DeferredQueue<Payload>::drain() noexcept {
  Cleaned all = seal_all(true);
  const std::uint64_t last = fences_.now();
  while (all.error == CUDA_SUCCESS && !all.capturing) {
    Epoch *const newest = use_newest(last);
    if (newest == nullptr) {
      break;
    }
    wait_for(*newest, all);  // a fence that passed answers for all before it
    const CaptureExclusion exclusion(fences_.captures());
    poll(all);
  }
  return all;
}

template <class Payload>
typename DeferredQueue<Payload>::Cleaned DeferredQueue<Payload>::wait_for_context(const Context &context) noexcept {
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
  all.left_bytes = unpassed_bytes(number);
  return all;
}

template <class Payload>
std::uint64_t DeferredQueue<Payload>::unpassed_bytes(std::uint64_t up_to) {
  Guard guard(mutex_);
  std::uint64_t bytes = 0;
  for (const Epoch &epoch : sealed_) {
    bytes += !epoch.passed && epoch.fence.number <= up_to ? epoch.size.bytes : 0;
  }
  return bytes;
}

}  // namespace ration::policy
