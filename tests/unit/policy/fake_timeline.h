// The work of the fake driver's contexts, the events that mark it, and the captures of their streams.
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "driver/abi.h"

namespace ration::test {

class FakeTimeline {
 public:
  // A point in each context's work: the number of pieces so far, counted over all contexts that a handle has named.
  using Point = std::map<CUcontext, std::uint64_t>;

  // Adds a piece of work, which is done once the test says so or a call waits for it.
  void submit(CUcontext context);
  void finish(CUcontext context);
  void finish(const Point &point);
  Point submitted() const;
  Point submitted_to(CUcontext context) const;  // for a primary context, also its green contexts
  bool is_behind(const Point &point) const;     // some of it is unfinished

  // A green context's work is also its primary context's, but not the other way round. When a context ends, its work is
  // done, and its events end.
  void make_green(CUcontext green, CUcontext primary);
  CUcontext primary_of(CUcontext context) const;  // the context itself if it is not green
  void end(CUcontext context);

  CUevent new_event(CUcontext owner);
  bool destroy_event(CUevent event);
  bool has_event(CUevent event);
  CUcontext owner_of(CUevent event) const;
  std::size_t live_events() const;
  CUresult record(CUcontext context, CUevent event);  // of a whole context
  bool point_of(CUevent event, Point &point) const;   // false if no context was recorded in it
  CUresult may_synchronise(CUcontext context);        // not while it captures

  CUstream open_stream(CUcontext context);
  void close_stream(CUstream stream);
  CUcontext context_of(CUstream stream) const;  // nullptr if no such stream was opened
  CUresult begin_capture(CUstream stream, CUcontext current);
  CUresult end_capture(CUstream stream);
  CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status);
  void spoil(CUstream stream);
  // Called with the name of every driver call. If a capture forbids this thread to make the call, the call is refused
  // and the capture becomes invalid. All captures count as begun in global mode.
  CUresult guard(const std::string &function);

  static inline thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

  // The counts of faults that no correct caller causes.
  int spoilt() const;     // captures that were invalidated by anything but spoil()
  int dead_uses() const;  // of events and streams that are gone
  std::set<std::string> forbidden() const;

 private:
  struct Capture {
    CUcontext context;
    int thread;
    CUstreamCaptureStatus status;
  };
  struct Event {
    CUcontext owner;
    bool of_context;
    Point at;
  };
  static std::pair<CUstream, int> key(CUstream stream);
  CUresult spoil_in(CUcontext context);  // REQUIRES: mutex_
  Point all_of(CUcontext context) const;

  mutable std::mutex mutex_;
  Point submitted_, finished_;
  std::map<CUcontext, CUcontext> primary_;  // of green ones
  std::map<CUevent, Event> events_;
  std::map<CUstream, CUcontext> streams_;
  std::map<std::pair<CUstream, int>, Capture> captures_;  // by stream; for a per-thread default stream, also by thread
  std::set<std::string> forbidden_;
  int spoilt_ = 0;
  int dead_uses_ = 0;
  std::uintptr_t next_handle_ = 0x900000;
};

}  // namespace ration::test
