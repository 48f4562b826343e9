// Fences: a fence has passed when everything that was submitted to any context before it was taken has finished.
// Layer: policy/contexts. Threads: any; driver calls outside the lock.
//
// Every live context counts that may reach the block's device: those of the device, and those that were given peer
// access to it or took part in a copy with it (Contexts::may_reach). If the driver has cuCtxRecordEvent (12.5), a
// fence is one event for each context, which covers the streams of all threads and the green contexts of a primary one,
// and nothing that is submitted later. Otherwise only cuCtxSynchronize says it, so a fence is a number to synchronise
// past.
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

// How long a call may wait for the device without need, so that a program holds less memory in quarantine.
inline constexpr std::uint64_t kBrieflyNs = 10'000'000;
// How long a request that would be denied waits for another thread's capture, during which nothing can be cleaned.
inline constexpr std::uint64_t kCapturePatienceNs = 1'000'000'000;
// An idle device passes a fence within some microseconds.
inline constexpr std::uint64_t kFenceNs = 200'000;
// How long a request waits for a device to become idle where only that lets it be served: the driver would have served
// it at once, and the device's work may itself wait for this call to return.
inline constexpr std::uint64_t kIdlePatienceNs = 1'000'000'000;

class FenceTracker;

// An event behind the latest calls of a context whose work reaches other devices: their blocks wait for no later work.
struct ReachEvent {
  explicit ReachEvent(FenceTracker &tracker, ContextRef of) : fences(tracker), context(std::move(of)) {}
  ~ReachEvent();
  ReachEvent(const ReachEvent &) = delete;
  ReachEvent &operator=(const ReachEvent &) = delete;

  FenceTracker &fences;
  const ContextRef context;
  CUevent event = nullptr;
  std::uint64_t number = 0;  // of a fence that would cover the same
};

struct Fence {
  struct Mark {
    ContextRef context;
    CUevent event = nullptr;                            // null: by synchronising
    bool broken = false;                                // its context was when the fence was taken
    std::shared_ptr<const ReachEvent> reach = nullptr;  // then `event` is its
  };
  std::uint64_t number = 0;  // ascending
  std::vector<Mark> marks;
};

class FenceTracker {
 public:
  FenceTracker(Contexts &contexts, Captures &captures) : contexts_(contexts), captures_(captures) {}

  // Whether this driver can tell when work has finished; if not, no block may ever be reused.
  static bool can_tell();
  // By events, or by synchronising: if it lacks them, exports them and answers NOT_SUPPORTED, or fails again and again.
  // Beside captures of which nothing is known only the program's own synchronises say it: no call of ours may.
  bool by_events() const {
    return has_events() && !events_refused_.load(std::memory_order_relaxed) && !captures_.has_unknown();
  }

  enum class Taken {
    taken,
    capturing,  // a capture runs: nothing was asked of the driver
    ending,     // a context is being destroyed
    failed,     // `error` is the driver's own, or OUT_OF_MEMORY: the host has none for it
  };
  // Of the contexts that may reach one device, or of all. REQUIRES: `fence` has no marks, and
  // CaptureExclusion. Only on `taken` does it have any.
  static constexpr int kAllDevices = -1;
  Taken take(Fence &fence, CUresult &error, int device = kAllDevices) noexcept;
  // CUDA_SUCCESS: passed. NOT_READY: not yet. Else the driver's own error, which proves nothing about the work; that of
  // a context that is broken for good is none for threads whose current context is another. Never waits. With
  // `only`, what that context contributed. REQUIRES: CaptureExclusion.
  CUresult query(const Fence &fence, const Context *only = nullptr);
  // The same, having waited for it, in relaxed mode by itself. NOT_READY: a capture prevents synchronising.
  CUresult wait(const Fence &fence, const Context *only = nullptr);
  // query() until it has passed or failed, `enough` says so, or kIdlePatienceNs are over: then NOT_READY.
  CUresult poll(const Fence &fence, FunctionRef<bool()> enough);
  // Whether nothing that was submitted before the call to contexts that may reach the device still runs; false if that
  // cannot be known without waiting.
  bool is_idle(int device);
  // A call of the context that noted its reach has returned. Without this the first fence after it has the context's
  // later work, too. One driver call; none during a capture.
  void end_reach(const ContextRef &context) noexcept;
  // Its events may serve another fence. REQUIRES: no thread asks about it any more.
  void recycle(Fence &fence) noexcept;

  // The program synchronises a context itself: success covers what was submitted before the call began.
  std::uint64_t now() const { return contexts_.now(); }
  static void passed(Context &context, std::uint64_t since);
  void forget(const ContextRef &context);
  Captures &captures() { return captures_; }

  // Whether something was freed and may have no fence yet: a load, for a call that is about to submit work. It stays
  // noted until a call that looked takes the note.
  bool unsealed_noted() const noexcept { return unsealed_.load(std::memory_order_relaxed); }
  void note_unsealed() noexcept { unsealed_.store(true, std::memory_order_release); }
  void take_unsealed_note() noexcept { (void)unsealed_.exchange(false); }  // then look again

 private:
  // So many failures of events in a row are no accident.
  static constexpr unsigned kMostFailed = 3;
  // What the driver answered about an event; from kMostFailed failures on no event is asked for.
  void heed(CUresult answer, std::atomic<unsigned> &failed_in_a_row);
  static bool has_events();
  Taken take_by_events(Fence &fence, std::vector<ContextRef> &live, CUresult &error);
  CUresult record(Fence &fence) noexcept;
  CUevent event_for(const ContextRef &context, CUresult &error) noexcept;
  friend struct ReachEvent;
  void spare(const ContextRef &context, CUevent event) noexcept;
  // The event that serves a fence of the device instead of one of its own; nullptr: none does.
  std::shared_ptr<const ReachEvent> reach_event(const Context &context, int device);
  // Until one has not passed. Calls ask(mark, number).
  template <class Ask>
  CUresult each_mark(const Fence &fence, const Context *only, const Ask &ask);
  CUresult query_mark(const Fence::Mark &mark, std::uint64_t number);
  CUresult record(Fence::Mark &mark) noexcept;
  CUresult wait_for_mark(const Fence::Mark &mark, std::uint64_t number);
  CUresult synchronise(Context &context);

  Contexts &contexts_;
  Captures &captures_;
  std::atomic<bool> events_refused_{false};  // for good
  std::atomic<unsigned> failed_records_{0};
  std::atomic<unsigned> failed_queries_{0};
  std::atomic<bool> unsealed_{false};
  RankedMutex mutex_{Rank::kProgress};
  std::unordered_map<Context *, std::vector<CUevent>> spare_ GUARDED_BY(mutex_);
  std::unordered_map<const Context *, std::shared_ptr<const ReachEvent>> reach_events_ GUARDED_BY(mutex_);
};

}  // namespace ration::policy
