// Takes fences. A fence has passed when all work that was submitted to any context before it was taken has finished.
// Layer: policy/contexts. Threads: any; driver calls outside the lock.
//
// A fence covers every live context that may reach the block's device: those of the device, and those that were given
// peer access to it or took part in a copy with it (Contexts::may_reach). If the driver has cuCtxRecordEvent (12.5), a
// fence is one event for each context, which covers the streams of all threads and the green contexts of a primary
// context, but no work that is submitted later. Otherwise only cuCtxSynchronize can show that work has finished, so a
// fence is just a number, and it has passed once every context has been synchronised after it.
// Design: design/quarantine.md#fences
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/lock.h"
#include "driver/functions.h"
#include "policy/contexts/captures.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

// How long a call may wait for the device only to keep the quarantine small.
inline constexpr std::uint64_t kBrieflyNs = 10'000'000;
// To merge several pieces into one, a request may wait for kBrieflyNs instead of kFenceNs. After such a long wait, the
// next long wait comes only when this many times its length has passed.
inline constexpr std::uint64_t kWaitsApart = 100;
// How long a request that would be denied waits for another thread's capture, which prevents cleaning.
inline constexpr std::uint64_t kCapturePatienceNs = 1'000'000'000;
// An idle device passes a fence in some microseconds, well within this time.
inline constexpr std::uint64_t kFenceNs = 200'000;
// How long a request waits for a device to become idle if it cannot be served otherwise. The wait is bounded, because
// the driver would have served the request at once and the device's work may itself wait for this call to return.
inline constexpr std::uint64_t kIdlePatienceNs = 1'000'000'000;

class FenceTracker;

// An event that was recorded after the latest of a context's calls whose work reaches other devices. With this event,
// blocks of these devices need not wait for later work of the context.
struct ReachEvent {
  explicit ReachEvent(FenceTracker &tracker, ContextRef of) : fences(tracker), context(std::move(of)) {}
  ~ReachEvent();
  ReachEvent(const ReachEvent &) = delete;
  ReachEvent &operator=(const ReachEvent &) = delete;

  FenceTracker &fences;
  const ContextRef context;
  CUevent event = nullptr;
  std::uint64_t number = 0;  // the number of a fence that would cover the same work
};

struct Fence {
  struct Mark {
    ContextRef context;
    CUevent event = nullptr;                            // null: the context is to be synchronised
    bool broken = false;                                // its context was broken when the fence was taken
    std::shared_ptr<const ReachEvent> reach = nullptr;  // if set, `event` belongs to it
  };
  std::uint64_t number = 0;  // ascending
  std::vector<Mark> marks;
};

class FenceTracker {
 public:
  FenceTracker(Contexts &contexts, Captures &captures) : contexts_(contexts), captures_(captures) {}

  // Whether this driver can report when work has finished. If not, no block may ever be reused.
  static bool can_tell();
  // Whether fences are events. If not, they depend on synchronising, because the driver lacks events, returns
  // NOT_SUPPORTED, or fails repeatedly. Also false after an unknown kind of capture: our calls must then not query the
  // driver, so only the program's own synchronisation shows that work has finished.
  bool by_events() const {
    return has_events() && !events_refused_.load(std::memory_order_relaxed) && !captures_.has_unknown();
  }

  enum class Taken {
    taken,
    capturing,  // a capture is in progress, so the driver was not asked
    ending,     // a context is being destroyed
    failed,     // `error` is the driver's error, or OUT_OF_MEMORY if host memory has run out
  };
  // Takes a fence of the contexts that may reach one device, or of all contexts. REQUIRES: `fence` has no marks, and
  // the caller has a CaptureExclusion. Afterwards the fence has marks only if the result is `taken`.
  static constexpr int kAllDevices = -1;
  Taken take(Fence &fence, CUresult &error, int device = kAllDevices) noexcept;
  // Returns CUDA_SUCCESS if the fence has passed, else NOT_READY. Any other value is a driver error, which proves
  // nothing about the work. If a context is permanently broken, its error counts as success for threads with another
  // current context. Never waits. `only`: asks only about this context. REQUIRES: a CaptureExclusion.
  CUresult query(const Fence &fence, const Context *only = nullptr);
  // Like query(), but waits for the fence, in relaxed capture mode. NOT_READY if a capture prevents synchronising.
  CUresult wait(const Fence &fence, const Context *only = nullptr);
  // Repeats query() until the fence has passed or the query fails. Returns NOT_READY if enough() returned true first or
  // kIdlePatienceNs have passed.
  CUresult poll(const Fence &fence, FunctionRef<bool()> enough);
  // Whether all work that was submitted before this call to contexts that may reach the device has finished. Also false
  // if that cannot be known without waiting.
  bool is_idle(int device);
  // Called when a call that noted the context's reach has returned. Records an event, without which the next fence
  // would also cover later work of the context. Makes one driver call, but none during a capture.
  void end_reach(const ContextRef &context) noexcept;
  // Keeps the events of a fence for other fences. REQUIRES: no thread asks about this fence any more.
  void recycle(Fence &fence) noexcept;

  // For a call by which the program synchronises: call now() before it, and passed() with that value after it has
  // succeeded. This covers all work that was submitted before the call began.
  std::uint64_t now() const { return contexts_.now(); }
  static void passed(Context &context, std::uint64_t since);
  void forget(const ContextRef &context);
  Captures &captures() { return captures_; }

  // Whether something was freed that may have no fence yet. Costs one load, for a call that is about to submit work.
  // The note stays until a call that has seen the note takes it.
  bool unsealed_noted() const noexcept { return unsealed_.load(std::memory_order_relaxed); }
  void note_unsealed() noexcept { unsealed_.store(true, std::memory_order_release); }
  void take_unsealed_note() noexcept { (void)unsealed_.exchange(false); }  // the caller then looks for such frees

 private:
  // After this many failures in a row, events are given up.
  static constexpr unsigned kMostFailed = 3;
  // Counts failures in the driver's results for events; after kMostFailed failures, no more events are used.
  void heed(CUresult answer, std::atomic<unsigned> &failed_in_a_row);
  static bool has_events();
  Taken take_by_events(Fence &fence, std::vector<ContextRef> &live, CUresult &error);
  CUresult record(Fence &fence) noexcept;
  CUevent event_for(const ContextRef &context, CUresult &error) noexcept;
  friend struct ReachEvent;
  void spare(const ContextRef &context, CUevent event) noexcept;
  // The context's ReachEvent if it can serve a fence of the device, so that no new event is needed; nullptr if it
  // cannot.
  std::shared_ptr<const ReachEvent> reach_event(const Context &context, int device);
  // Calls ask(mark, number) for one mark after the other, until a mark has not passed.
  template <class Ask>
  CUresult each_mark(const Fence &fence, const Context *only, const Ask &ask);
  CUresult query_mark(const Fence::Mark &mark, std::uint64_t number);
  CUresult record(Fence::Mark &mark) noexcept;
  CUresult wait_for_mark(const Fence::Mark &mark, std::uint64_t number);
  CUresult synchronise(Context &context);

  Contexts &contexts_;
  Captures &captures_;
  std::atomic<bool> events_refused_{false};  // permanently
  std::atomic<unsigned> failed_records_{0};
  std::atomic<unsigned> failed_queries_{0};
  std::atomic<bool> unsealed_{false};
  RankedMutex mutex_{Rank::kProgress};
  std::unordered_map<Context *, std::vector<CUevent>> spare_ GUARDED_BY(mutex_);
  std::unordered_map<const Context *, std::shared_ptr<const ReachEvent>> reach_events_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
