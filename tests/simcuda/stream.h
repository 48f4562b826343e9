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

struct Capture;
struct Context;
struct GraphNode;
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
  std::shared_ptr<Capture> capture;   // capture.h; null: the stream's work is done, not captured
  std::vector<GraphNode *> frontier;  // what its next captured operation comes behind
};

std::shared_ptr<Stream> new_stream(Context &context, Stream::Kind kind, int priority);

// The same under a handle of the program; the priority is clamped.
CUstream make_stream(Context &context, Stream::Kind kind, int priority);

enum class Pace : unsigned char { kDelayed, kInstant };

// Queues work behind the stream's earlier work, behind `after`, and behind what the default-stream rules demand.
// `work` runs without the lock.
Mark submit(Lock &, const std::shared_ptr<Stream> &stream, Pace pace, std::function<void()> work,
            std::vector<Mark> after = {});

void wait(Lock &lock, const Mark &mark);
// Everything that was submitted so far to the context; to a primary one, to its green contexts, too.
std::vector<Mark> marks_of(const Context &context);
// Waits for all that.
void drain(Lock &lock, Context &context);
// The context and, if it is a primary one, its green contexts.
std::vector<Context *> family(const Context &context);
// A number of this thread's own. The second is 0 when the thread has none yet.
std::uint64_t this_thread(Lock &);
std::uint64_t this_thread_or_none();
bool idle(const Context &context, const std::shared_ptr<Stream> &stream);

// What a handle means in this call, 0 and the two default handles included; INVALID_CONTEXT, INVALID_HANDLE,
// CONTEXT_IS_DESTROYED: the stream's green context has gone.
CUresult find_stream(Lock &lock, CUstream handle, std::shared_ptr<Stream> *stream);

// How a call stands to its work: an asynchronous one may be captured, a synchronous one never is; some wait for it.
enum class Form : unsigned char { kAsynchronous, kSynchronous };
enum class Until : unsigned char { kQueued, kDone };

// Queues the work, or captures it where the stream captures (then nothing waits); errors of may_use (capture.h), and
// STREAM_CAPTURE_UNSUPPORTED for what a capture forbids.
CUresult run(Lock &lock, const std::shared_ptr<Stream> &stream, Form form, Until until, std::function<void()> work);
CUresult run(Lock &lock, CUstream handle, Form form, Until until, std::function<void()> work);

}  // namespace simcuda
