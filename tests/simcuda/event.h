// Events: a point in a stream, and when it was passed. Layer: stream.h. Threads: under Driver::mutex, but `passed_ns`.
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
  std::vector<Mark> marks;  // what it comes behind
  std::shared_ptr<std::atomic<std::int64_t>> passed_ns;
  // Last recorded in a capturing stream: the capture, though it may be over, and what was captured there before.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> frontier;

  bool reached() const {
    return std::all_of(marks.begin(), marks.end(), [](const Mark &mark) { return mark.reached(); });
  }
};

CUresult find_event(CUevent handle, std::shared_ptr<Event> *event);
// Has the event stand for all of that, and tell when it was over.
void record(Event &event, std::vector<Mark> marks, std::shared_ptr<std::atomic<std::int64_t>> passed_ns);
std::int64_t now_ns();

}  // namespace simcuda
