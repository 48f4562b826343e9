// Streams that run asynchronously to the host: one queue each, served in order by a worker thread, with the ordering
// that the default streams guarantee. Layer: driver.h. Threads: all under Driver::mutex except the work itself.
// Owns: worker threads; they are never joined, and exit when their stream has been idle for a while.
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
struct Graph;
struct GraphNode;
struct Stream;
using Lock = std::unique_lock<std::mutex>;

// A point in a stream; stands for every operation up to `number`.
struct Mark {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;
  bool reached() const;
};

struct Operation {
  std::function<void()> work;
  std::vector<Mark> after;
  bool instant;  // a marker, which has no latency
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
  std::vector<GraphNode *> frontier;  // dependencies of its next captured operation
};

std::shared_ptr<Stream> new_stream(Context &context, Stream::Kind kind, int priority);

// Creates a stream with a handle for the program; the priority is clamped.
CUstream make_stream(Context &context, Stream::Kind kind, int priority);

enum class Pace : unsigned char { kDelayed, kInstant };

// Queues work after the stream's earlier work, after `after`, and after what the default-stream rules require. `work`
// runs without the lock.
Mark submit(Lock &, const std::shared_ptr<Stream> &stream, Pace pace, std::function<void()> work,
            std::vector<Mark> after = {});

void wait(Lock &lock, const Mark &mark);
// All work submitted so far to the context and, for a primary context, to its green contexts.
std::vector<Mark> marks_of(const Context &context);
// Waits for all this work.
void drain(Lock &lock, Context &context);
// The context and, for a primary context, its green contexts.
std::vector<Context *> family(const Context &context);
// A number unique to this thread. The second is 0 if the thread has none yet.
std::uint64_t this_thread(Lock &);
std::uint64_t this_thread_or_none();
bool idle(const Context &context, const std::shared_ptr<Stream> &stream);

// Resolves a handle in this call, including 0 and the two default handles; INVALID_CONTEXT, INVALID_HANDLE,
// or CONTEXT_IS_DESTROYED if the stream's green context was destroyed.
CUresult find_stream(Lock &lock, CUstream handle, std::shared_ptr<Stream> *stream);

// How a call relates to its work: asynchronous work may be captured, synchronous work never is; some calls wait.
enum class Form : unsigned char { kAsynchronous, kSynchronous };
enum class Until : unsigned char { kQueued, kDone };

// Runs a host function of the program. In the process only one runs at a time, in the order in which they become due
// (H100, H200, driver 580.159: a blocked function also blocked those of other streams and contexts).
void in_turn(const std::function<void()> &host_function);

// Work, and the kind of node that it becomes in a graph.
struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::function<void()> run = {};
};

// Queues the work, or captures it if the stream captures (then nothing waits); returns the errors of may_use
// (capture.h), and STREAM_CAPTURE_UNSUPPORTED for work that a capture forbids.
CUresult run(Lock &lock, const std::shared_ptr<Stream> &stream, Form form, Until until, Work work);
CUresult run(Lock &lock, CUstream handle, Form form, Until until, Work work);

}  // namespace simcuda
