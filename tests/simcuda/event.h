// Events: a point in a stream, and when it was passed. Layer: stream.h. Threads: under Driver::mutex, but `passed_ns`.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "tests/simcuda/stream.h"

namespace simcuda {

struct Event {
  Context *context = nullptr;
  unsigned flags = 0;
  Mark mark;  // no stream: never recorded
  std::shared_ptr<std::atomic<std::int64_t>> passed_ns;
};

}  // namespace simcuda
