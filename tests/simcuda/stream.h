// Streams that run behind the host: a queue each, served in order by a thread of its own, with the ordering that the
// default streams promise. Layer: driver.h. Threads: everything here is under Driver::mutex but the work itself.
// Owns: worker threads; they are never joined, and go when their stream has been idle for a while.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

namespace simcuda {

struct Context;
struct Stream;
using Lock = std::unique_lock<std::mutex>;

// A point in a stream: everything up to its `number`-th operation.
struct Mark {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;
  bool reached() const;
};

struct Operation {
  std::function<void()> work;
  std::vector<Mark> after;
  bool instant;  // a marker: no latency of its own
};

struct Stream {
  enum class Kind : unsigned char { kLegacy, kPerThread, kBlocking, kNonBlocking };
  Context *context = nullptr;
  Kind kind = Kind::kBlocking;
  int priority = 0;
  std::uint64_t id = 0;
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  bool served = false;  // has a worker
  bool destroyed = false;
  std::deque<Operation> queue;
  std::condition_variable arrived;
};

std::shared_ptr<Stream> new_stream(Context &context, Stream::Kind kind, int priority);

enum class Pace : unsigned char { kDelayed, kInstant };

// Queues work behind the stream's earlier work, behind `after`, and behind what the default-stream rules demand.
// `work` runs without the lock.
Mark submit(Lock &, const std::shared_ptr<Stream> &stream, Pace pace, std::function<void()> work,
            std::vector<Mark> after = {});

void wait(Lock &lock, const Mark &mark);
// Waits for everything that was submitted to the context before the call.
void drain(Lock &lock, Context &context);
bool idle(const Context &context, const std::shared_ptr<Stream> &stream);

// What a handle means in this call, 0 and the two default handles included; INVALID_CONTEXT, INVALID_HANDLE.
CUresult find_stream(Lock &lock, CUstream handle, std::shared_ptr<Stream> *stream);

// Submits and, where `synchronous`, waits until it is done.
CUresult run(Lock &lock, CUstream handle, bool synchronous, std::function<void()> work);

}  // namespace simcuda
