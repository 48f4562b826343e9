// Stream captures of this process, and what keeps them apart from our own queries of the device.
// Layer: policy/contexts. Threads: any; driver calls outside the lock.
//
// cuCtxRecordEvent and cuCtxSynchronize invalidate every capture of their context (driver API manual), so they run only
// while no capture does, and a capture that begins meanwhile waits for them. A capture may take in streams of several
// contexts, so any capture counts.
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
  // Around begin-capture and end-capture calls; every begin is finished.
  void begin_capture();
  // `context` is the stream's; a per-thread default stream is one for each thread and context.
  void finish_begin(CUstream stream, CUresult result, const ContextRef &context);
  // Before an end: the capture that it can only mean; 0: none that is known.
  std::uint64_t number_of(CUstream stream, const ContextRef &context);
  void finish_end(std::uint64_t number, CUresult result);
  // A capture is about to begin in a way of a newer driver's that no hook knows, so that nothing will tell its end:
  // from now on as if one ran for ever. Waits as begin_capture() does. True: the first time.
  bool begin_unknown();
  bool has_unknown() const { return has_unknown_.load(std::memory_order_relaxed); }
  // A destroyed stream captures no more. Before the driver's call, so that no thread asks about a dead handle.
  void forget(CUstream stream);
  void forget(const ContextRef &context);

  // True: no capture runs and none begins before leave().
  bool enter();
  // The same without asking the driver about captures that may be over.
  bool enter_if_quiet();
  void leave();
  // Whether any capture is known to run; whether other threads began all of those, and at least one.
  bool running();
  bool run_elsewhere_only();
  bool is_run_here() { return running() && !run_elsewhere_only(); }

 private:
  // A thread counts itself in beginning_, quiet_ or asking_ across driver calls.
  template <int Captures::*kCount>
  void count_in() REQUIRES(mutex_);
  template <int Captures::*kCount>
  void count_out();
  template <int Captures::*kCount>
  static void left(void *captures) noexcept;
  struct Capture {
    CUstream stream = nullptr;
    ContextRef context;
    int thread = 0;            // that began it
    std::uint64_t number = 0;  // from 1
  };
  // Asks the driver about every capture that is known; forgets those that are over. REQUIRES: asking_ > 0.
  void confirm();
  static bool may_still_run(const Capture &capture);
  static bool same(const Capture &one, const Capture &other);

  RankedMutex mutex_{Rank::kCaptures};
  std::list<Capture> captures_ GUARDED_BY(mutex_);
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  bool lost_one_ GUARDED_BY(mutex_) = false;  // one that could not be remembered: as if it ran for ever
  std::atomic<bool> has_unknown_{false};
  int beginning_ GUARDED_BY(mutex_) = 0;
  int quiet_ GUARDED_BY(mutex_) = 0;   // threads between enter() and leave()
  int asking_ GUARDED_BY(mutex_) = 0;  // threads that ask the driver about streams in the list
};

// Whether a stream that lives captures, by whichever function the driver has; NOT_SUPPORTED where it has none.
CUresult capture_status(CUstream stream, CUstreamCaptureStatus &status);

// Whether what is submitted to the stream now becomes part of a graph. Asked only where a capture is known to run: the
// question itself would spoil one that the legacy stream is not part of.
bool is_captured(CUstream stream);

// What the driver answers this thread's allocations while captures run: STREAM_CAPTURE_UNSUPPORTED where one forbids
// them, which loses that capture. H100, H200, driver 580.159: a free of null is refused as an allocation is, and costs
// nothing; calls about physical memory are not refused.
CUresult forbidden_by_captures();

// What the driver answers an allocation of the stream before it looks for memory: SUCCESS, or that the stream is none,
// or that captures, or an earlier error of its context, forbid it.
CUresult wrong_with_stream(CUstream stream);

// In relaxed mode (cuThreadExchangeStreamCaptureMode) our driver calls do not invalidate a capture of this thread, or a
// global one of another, that would forbid them otherwise.
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

// Around a few short calls that must not disturb any capture of the process: none begins meanwhile, or, if one runs,
// they run in relaxed mode, which costs two driver calls.
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
