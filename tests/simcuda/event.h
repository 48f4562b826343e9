// Events: a point in a stream, and the time it was reached. Layer: stream.h. Threads: under Driver::mutex, except
// `passed_ns`.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct Event {
  Context *context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  std::vector<Mark> marks;  // the work that the event follows
  std::shared_ptr<std::atomic<std::int64_t>> passed_ns;
  // If last recorded in a capturing stream, the capture (which may have ended) and the nodes captured before.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> frontier;

  bool reached() const {
    return std::all_of(marks.begin(), marks.end(), [](const Mark &mark) { return mark.reached(); });
  }
};

CUresult find_event(CUevent handle, std::shared_ptr<Event> *event);
// Records all these marks in the event, and the time when the last mark is reached.
void record(Event &event, std::vector<Mark> marks, std::shared_ptr<std::atomic<std::int64_t>> passed_ns);
std::int64_t now_ns();

}  // namespace simcuda
