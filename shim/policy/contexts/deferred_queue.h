// Holds freed memory that the device may still use. Each payload waits until all work that was submitted before it was
// added has finished.
// Layer: policy/contexts. Threads: any; driver calls outside the lock. Owns: the payloads until they are reclaimed.
// Used by the quarantine of the pools, by the deferred frees of mode async, and for imports that were closed.
//
// Why nothing is reclaimed early, and nothing twice:
// - A payload is in exactly one list at any time: open_, an epoch of sealing_, or an epoch of sealed_. All three change
//   only under mutex_, so a thread that holds mutex_ sees every payload, even while a fence for it is being taken. A
//   user that drops the payloads of an ended context (each_list) therefore waits for no other thread.
// - Sealing moves the open payloads to a new epoch under mutex_ before the fence is taken, so the fence covers every
//   payload of its epoch. While an epoch is in sealing_, only the sealing thread touches its fence. If the fence cannot
//   be taken (capture in progress, context being destroyed, driver failed), the payloads return to open_.
// - Once in sealed_, a fence is read-only. A thread that asks the driver about it counts in `users` first; an epoch
//   whose payloads are gone is recycled only at users == 0. Until then `passed`, once it is set, stays set.
// - Payloads are reclaimed from passed epochs under mutex_, as many at a time as the user chooses. The user may refuse
//   payloads whose free is not in the log yet. A sealed payload gets no more frees, so it is refused only until the log
//   has the frees that it holds.
// - Ended contexts: a fence treats them as passed (fence_tracker.h). Captures: a fence is taken between Captures::enter
//   and leave, or not at all, and queries run under CaptureExclusion.
// - wait() answers "nothing" only if, under mutex_, no epoch is sealed, no other thread is sealing one, no thread holds
//   payloads that it took out (in_hands_), and reclaimed() still has its value from before the caller last looked for
//   memory. A thread adds to reclaimed_ before it subtracts from in_hands_; wait() reads the two in reverse order.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "base/function_ref.h"
#include "base/lock.h"
#include "policy/contexts/fence_tracker.h"

namespace ration::policy {

struct DeferredSize {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ordered = 0;  // how many of the blocks were freed in stream order

  void add(DeferredSize other) { blocks += other.blocks, bytes += other.bytes, ordered += other.ordered; }
  void remove(DeferredSize other) { blocks -= other.blocks, bytes -= other.bytes, ordered -= other.ordered; }
  bool is_ordered() const { return ordered == blocks; }
};

// The base class of payloads; each user derives its own.
struct Deferred {
  virtual ~Deferred() = default;
};

class DeferredQueue {
 public:
  using Items = std::list<std::unique_ptr<Deferred>>;  // moved without host memory

  DeferredQueue(const DeferredQueue &) = delete;
  DeferredQueue &operator=(const DeferredQueue &) = delete;

  struct Cleaned : DeferredSize {
    CUresult error = CUDA_SUCCESS;  // from a driver call by Ration that failed and so cleaned nothing
    bool capturing = false;         // a capture is in progress, so open payloads cannot be sealed
    bool ending = false;            // a context is being destroyed, so open payloads cannot be sealed either
    bool waited = false;            // the call waited for the device
    std::uint64_t left_bytes = 0;   // for wait_for_context(): bytes that wait for other contexts
    bool others_cleaned = false;    // another thread may have reclaimed memory, so look again
    Items items;                    // the payloads that the caller must finish, if the user hands them out
  };
  enum class Sealing {
    always,
    worthwhile,   // only if nothing was clean and worth_sealing(), because an epoch costs calls
    before_work,  // unless too many seals before work were made recently
  };
  // Called when the program synchronises: allows as many seals before work as at the start.
  void seal_finely() noexcept {
    Guard guard(mutex_);
    before_work_left_ = kMostBeforeWork;
  }
  bool has_unsealed() const { return unsealed_.load(std::memory_order_relaxed) != 0; }
  // Reclaims clean payloads. Never waits for the device.
  Cleaned collect(Sealing sealing) noexcept;
  // Collects; if nothing was clean, waits for the oldest epoch, unless reclaimed() is no longer `seen`. If everything
  // was freed in stream order, waits at most kIdlePatienceNs, because the driver would not have waited in those frees,
  // and the work before them may itself wait for this call to return. If blocks, others_cleaned, error and capturing
  // are all 0 or false, there is nothing left to wait for.
  Cleaned wait(std::uint64_t seen) noexcept;
  // Waits until everything that was added before the call is clean.
  Cleaned drain() noexcept;
  // Waits as the driver's own free does, for the work that was submitted to `context` before the call, then reclaims
  // clean payloads. During a capture, does not wait.
  Cleaned wait_for_context(const Context &context) noexcept;

  // The blocks and bytes that were added and are not reclaimed yet, and the number of blocks reclaimed so far.
  std::uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t reclaimed() const { return reclaimed_.load(); }

 protected:
  // `device`: the device of all payloads, or kAllDevices.
  DeferredQueue(FenceTracker &fences, Rank rank, int device = FenceTracker::kAllDevices)
      : fences_(fences), mutex_(rank), device_(device) {}
  virtual ~DeferredQueue() = default;

  // Removes some of the clean `items` from the list, and either moves them to cleaned.items or reclaims them at once
  // (note_reclaimed). Returns false if none of them may be reclaimed yet.
  virtual bool reclaim(Items &items, Cleaned &cleaned) REQUIRES(mutex_) = 0;
  // Moves payloads that the user keeps elsewhere to open_.
  virtual void gather() REQUIRES(mutex_) {}
  virtual bool worth_sealing() REQUIRES(mutex_) { return sealed_.empty(); }
  // Called after each change that a seal makes to the open payloads.
  enum class Seal { begun, taken, refused };
  virtual void note_seal(Seal) REQUIRES(mutex_) {}

  void note_added(DeferredSize size) REQUIRES(mutex_);
  void note_reclaimed(DeferredSize size);
  // Counts payloads as unreclaimed again.
  void unreclaim(DeferredSize size) REQUIRES(mutex_);
  // Moves payloads that are already counted as added back to open_.
  void reopen(Items &items, DeferredSize size) REQUIRES(mutex_);
  // Calls visit(items, size) for every list of payloads.
  void each_list(FunctionRef<void(Items &, DeferredSize &)> visit) REQUIRES(mutex_);

 private:
  struct Epoch {
    DeferredQueue *queue = nullptr;
    std::list<Epoch>::iterator self;
    Items items;
    DeferredSize size;
    Fence fence;
    const void *sealer = nullptr;  // the thread that is taking the fence
    int users = 0;                 // threads that are asking the driver about the fence
    bool passed = false;
  };
  // A fence for each free costs more than one fence for a thousand frees. So once calls that submit work have made this
  // many seals, they make only one seal in 10 ms.
  static constexpr std::uint64_t kMostBeforeWork = 64;
  static constexpr std::uint64_t kBeforeWorkNs = 10'000'000;

  void publish_open() REQUIRES(mutex_);
  bool seals_before_work() REQUIRES(mutex_);
  // Moves the open payloads to a new epoch. Returns nullptr if there are none or host memory for an epoch has run out.
  Epoch *begin_seal(Cleaned &cleaned) noexcept REQUIRES(mutex_);
  void finish_seal(Epoch &epoch, Cleaned &cleaned);
  void drop_seal(Epoch &epoch) REQUIRES(mutex_);
  Cleaned seal_all(bool waits_for_ends);
  // Whether another thread is sealing. This thread's own seals do not count: the driver's call that takes a fence may
  // call back into us, and we would then wait for ourselves.
  bool is_sealed_elsewhere() REQUIRES(mutex_);
  // Counts the thread among the epoch's users, until it calls note_answer().
  Epoch *use(Epoch &epoch) REQUIRES(mutex_);
  // Uses the newest epoch that has not passed and whose fence number is at most `up_to`; nullptr if there is none.
  Epoch *use_newest(std::uint64_t up_to);
  void note_answer(Epoch &epoch, CUresult answer, Cleaned &cleaned);
  // Undo what a thread does for an epoch across driver calls, in case the thread leaves such a call (base/held.h).
  static void leave_seal(void *epoch) noexcept;
  static void leave_use(void *epoch) noexcept;
  void poll(Cleaned &cleaned);
  void wait_for(Epoch &epoch, std::optional<std::uint64_t> seen, Cleaned &cleaned);
  bool reclaim_some(Cleaned &cleaned, bool &refused);
  bool is_all_ordered() REQUIRES(mutex_);

 protected:
  FenceTracker &fences_;
  RankedMutex mutex_;
  const int device_;
  Items open_ GUARDED_BY(mutex_);
  DeferredSize open_size_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> in_hands_{0};  // blocks in Cleaned::items that callers have not finished

 private:
  std::uint64_t before_work_left_ GUARDED_BY(mutex_) = kMostBeforeWork;
  std::uint64_t before_work_ns_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> unsealed_{0};  // open_size_.blocks, for threads without the lock
  std::list<Epoch> sealing_ GUARDED_BY(mutex_);
  std::list<Epoch> sealed_ GUARDED_BY(mutex_);  // oldest first
  std::list<Epoch> spare_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> reclaimed_{0};
};

}  // namespace ration::policy
