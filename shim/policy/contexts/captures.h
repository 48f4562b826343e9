// Tracks the stream captures of this process, and prevents our own queries to the device from disturbing them.
// Layer: policy/contexts. Threads: any; driver calls outside the lock.
//
// cuCtxRecordEvent and cuCtxSynchronize invalidate every capture in their context (driver API manual), so we call them
// only while no capture is in progress, and a capture that is about to begin waits for them. A capture may include
// streams of several contexts, so a capture in any context counts.
// Design: design/quarantine.md#captures
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <optional>

#include "base/lock.h"
#include "driver/functions.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

class Captures {
 public:
  // Called around the program's begin-capture and end-capture calls. Every begin_capture() is followed by a
  // finish_begin().
  void begin_capture();
  // `context` is the stream's context. The per-thread default stream is a different stream for each thread and context.
  void finish_begin(CUstream stream, CUresult result, const ContextRef &context);
  // Called before an end-capture call. Returns the number of the capture that the call will end, or 0 if it is unknown.
  std::uint64_t number_of(CUstream stream, const ContextRef &context);
  void finish_end(std::uint64_t number, CUresult result);
  // Called when a newer driver's function, which no hook knows, is about to begin a capture. We will not see its end,
  // so from now on a capture counts as running for ever. Waits as begin_capture() does. Returns true the first time.
  bool begin_unknown();
  bool has_unknown() const { return has_unknown_.load(std::memory_order_relaxed); }
  // Forgets the captures of a stream or a context. For a stream, called before the driver's call that destroys it, so
  // that no thread asks about a dead handle.
  void forget(CUstream stream);
  void forget(const ContextRef &context);

  // Returns true if no capture is in progress; then none will begin before leave().
  bool enter();
  // Like enter(), but does not ask the driver whether known captures are over.
  bool enter_if_quiet();
  void leave();
  // Whether any capture is known to be in progress. run_elsewhere_only(): whether any is, but none of this thread.
  bool running();
  bool run_elsewhere_only();
  bool is_run_here() { return running() && !run_elsewhere_only(); }

 private:
  // Count the thread in beginning_, quiet_ or asking_, across driver calls. left() undoes the count if such a call
  // never returns.
  template <int Captures::*kCount>
  void count_in() REQUIRES(mutex_);
  template <int Captures::*kCount>
  void count_out();
  template <int Captures::*kCount>
  static void left(void *captures) noexcept;
  struct Capture {
    CUstream stream = nullptr;
    ContextRef context;
    int thread = 0;            // the thread that began it
    std::uint64_t number = 0;  // from 1
  };
  // Asks the driver about every known capture and forgets those that are over. REQUIRES: asking_ > 0.
  void confirm();
  static bool may_still_run(const Capture &capture);
  static bool same(const Capture &one, const Capture &other);

  RankedMutex mutex_{Rank::kCaptures};
  std::list<Capture> captures_ GUARDED_BY(mutex_);
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  bool lost_one_ GUARDED_BY(mutex_) = false;  // a capture could not be recorded, so one counts as running for ever
  std::atomic<bool> has_unknown_{false};
  int beginning_ GUARDED_BY(mutex_) = 0;
  int quiet_ GUARDED_BY(mutex_) = 0;   // threads between enter() and leave()
  int asking_ GUARDED_BY(mutex_) = 0;  // threads that ask the driver about streams in captures_
};

// Gets the capture status of a live stream, with whichever function the driver has; NOT_SUPPORTED if it has none.
CUresult capture_status(CUstream stream, CUstreamCaptureStatus &status);

// Whether work that is submitted to the stream now becomes part of a graph. Call this only if a capture is known to be
// in progress, because a query about the legacy stream invalidates a capture to which this stream does not belong.
bool is_captured(CUstream stream);

// The driver's result for this thread's allocations while captures are in progress: STREAM_CAPTURE_UNSUPPORTED if a
// capture forbids them, which makes that capture invalid. It is determined by freeing null, which is refused as an
// allocation would be and costs nothing (H100, H200, driver 580.159). Calls for physical memory are not refused.
CUresult forbidden_by_captures();

// The driver's result for an allocation on the stream before it looks for memory: SUCCESS, or an error because the
// stream is invalid, or because a capture or an earlier error of its context forbids it.
CUresult wrong_with_stream(CUstream stream);

// While an object of this class lives, relaxed mode is set (cuThreadExchangeStreamCaptureMode). In it, our driver calls
// do not invalidate captures that would otherwise forbid them: this thread's captures, and other threads' global ones.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

 private:
  static void exchange_back(void *mode) noexcept;

  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool exchanged_;
};

// Used around a few short calls that must not disturb any capture of the process. While this object lives, no capture
// begins; if a capture is already in progress, the calls are in relaxed mode instead, which costs two driver calls.
class CaptureExclusion {
 public:
  explicit CaptureExclusion(Captures &captures) : captures_(captures), quiet_(captures.enter_if_quiet()) {
    if (!quiet_) {
      relaxed_.emplace();
    }
  }
  ~CaptureExclusion() {
    if (quiet_) {
      captures_.leave();
    }
  }
  CaptureExclusion(const CaptureExclusion &) = delete;
  CaptureExclusion &operator=(const CaptureExclusion &) = delete;

 private:
  Captures &captures_;
  const bool quiet_;
  std::optional<RelaxedCapture> relaxed_;
};

}  // namespace ration::policy
