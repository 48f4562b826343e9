#include "tests/simcuda/stream.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

constexpr std::chrono::milliseconds kIdleWorkerLife{200};

thread_local std::uint64_t thread_number = 0;  // 0: no number assigned to this thread yet

// Each worker has a separate random latency sequence.
unsigned draw(const Settings &settings, std::minstd_rand &random) {
  return std::uniform_int_distribution<unsigned>(settings.least_latency_us, settings.most_latency_us)(random);
}

void linger(unsigned microseconds) {
  timespec left{microseconds / 1000000, static_cast<long>(microseconds % 1000000) * 1000};
  while (left.tv_sec + left.tv_nsec > 0 && ::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) != 0) {
  }
}

void serve(std::shared_ptr<Stream> stream) {
  const DeviceSide device_side;
  Driver &state = driver();
  Lock lock(state.mutex);
  std::minstd_rand random(static_cast<unsigned>(stream->id));
  while (stream->arrived.wait_for(lock, kIdleWorkerLife, [&] { return !stream->queue.empty(); })) {
    Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    for (const Mark &mark : operation.after) wait(lock, mark);
    lock.unlock();
    if (!operation.instant) linger(draw(*state.settings, random));
    operation.work();
    operation = {};
    lock.lock();
    ++stream->completed;
    find_faults(*stream);
    state.progress.notify_all();
  }
  stream->served = false;
}

// H100, H200, driver 580.159: the driver's threads do not block the program's signals.
void start_worker(const std::shared_ptr<Stream> &stream) {
  std::thread(serve, stream).detach();
  stream->served = true;
}

bool busy(const Stream &stream) {
  return stream.completed < stream.submitted;
}

bool heeds_legacy(const Stream &stream) {
  return stream.kind == Stream::Kind::kBlocking || stream.kind == Stream::Kind::kPerThread;
}

// The waits of cuCtxWaitEvent, of the stream's context or of its primary context.
void add_awaited(const Context &context, std::vector<Mark> &after) {
  for (const Context *waiting : {&context, static_cast<const Context *>(context.root)}) {
    for (const Mark &mark : waiting->awaited) {
      if (!mark.reached()) after.push_back(mark);
    }
  }
}

// The legacy default stream waits for all blocking streams, and they wait for it.
void add_default_order(const std::shared_ptr<Stream> &stream, std::vector<Mark> &after) {
  const Context &context = *stream->context;
  if (stream->kind == Stream::Kind::kLegacy) {
    for (const auto &other : context.streams) {
      if (heeds_legacy(*other) && busy(*other)) after.push_back({other, other->submitted});
    }
  } else if (heeds_legacy(*stream) && busy(*context.legacy)) {
    after.push_back({context.legacy, context.legacy->submitted});
  }
}

std::shared_ptr<Stream> per_thread_stream(Lock &lock, Context &context) {
  auto &stream = context.per_thread[this_thread(lock)];
  if (stream == nullptr) stream = new_stream(context, Stream::Kind::kPerThread, 0);
  return stream;
}

}  // namespace

std::uint64_t this_thread(Lock &) {
  if (thread_number == 0) thread_number = driver().next_id++;
  return thread_number;
}

std::uint64_t this_thread_or_none() {
  return thread_number;
}

bool Mark::reached() const {
  return stream == nullptr || stream->completed >= number;
}

std::shared_ptr<Stream> new_stream(Context &context, Stream::Kind kind, int priority) {
  auto stream = std::make_shared<Stream>();
  stream->context = &context;
  stream->kind = kind;
  stream->priority = priority;
  stream->id = driver().next_id++;
  std::erase_if(context.streams, [](const auto &old) { return old->destroyed && !busy(*old); });
  context.streams.push_back(stream);
  return stream;
}

Mark submit(Lock &, const std::shared_ptr<Stream> &stream, Pace pace, std::function<void()> work,
            std::vector<Mark> after) {
  add_default_order(stream, after);
  add_awaited(*stream->context, after);
  if (!stream->served) start_worker(stream);
  stream->queue.push_back({std::move(work), std::move(after), pace == Pace::kInstant});
  ++stream->submitted;
  stream->arrived.notify_one();
  return {stream, stream->submitted};
}

void wait(Lock &lock, const Mark &mark) {
  driver().progress.wait(lock, [&] { return mark.reached(); });
}

std::vector<Context *> family(const Context &context) {
  std::vector<Context *> members{const_cast<Context *>(&context)};
  if (!context.primary) return members;
  for (const auto &[handle, other] : driver().contexts) {
    if (other->green() && other->root == &context) members.push_back(other.get());
  }
  return members;
}

std::vector<Mark> marks_of(const Context &context) {
  std::vector<Mark> marks;
  for (const Context *member : family(context)) {
    for (const auto &stream : member->streams) {
      if (busy(*stream)) marks.push_back({stream, stream->submitted});
    }
  }
  return marks;
}

void drain(Lock &lock, Context &context) {
  for (const Mark &mark : marks_of(context)) wait(lock, mark);
}

bool idle(const Context &context, const std::shared_ptr<Stream> &stream) {
  if (busy(*stream)) return false;
  return stream->kind != Stream::Kind::kLegacy ||
         std::none_of(context.streams.begin(), context.streams.end(),
                      [](const auto &other) { return heeds_legacy(*other) && busy(*other); });
}

CUresult find_stream(Lock &lock, CUstream handle, std::shared_ptr<Stream> *stream) {
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  const bool per_thread =
      handle == CU_STREAM_PER_THREAD || (handle == nullptr && default_stream() == DefaultStream::kPerThread);
  if (per_thread && context->green()) return CUDA_ERROR_INVALID_HANDLE;  // cuda.h, cuStreamGetCtx_v2
  if (per_thread || handle == nullptr || handle == CU_STREAM_LEGACY) {
    *stream = per_thread ? per_thread_stream(lock, *context) : context->legacy;
    return CUDA_SUCCESS;
  }
  const auto found = driver().streams.find(handle);
  if (found == driver().streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (!found->second->context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *stream = found->second;
  return CUDA_SUCCESS;
}

CUresult run(Lock &lock, CUstream handle, Form form, Until until, Work work) {
  std::shared_ptr<Stream> stream;
  if (const CUresult error = find_stream(lock, handle, &stream); error != CUDA_SUCCESS) return error;
  return run(lock, stream, form, until, std::move(work));
}

CUresult run(Lock &lock, const std::shared_ptr<Stream> &stream, Form form, Until until, Work work) {
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (stream->capture != nullptr) {
    if (form == Form::kSynchronous) return refuse(*stream);
    stream->frontier = {
        add_node(*stream->capture->graph,
                 {.type = work.type, .work = std::move(work.run), .after = stream->frontier, .captured = true})};
    return CUDA_SUCCESS;
  }
  const Mark mark = submit(lock, stream, Pace::kDelayed, std::move(work.run));
  if (until == Until::kDone) wait(lock, mark);
  return until == Until::kDone ? stream->context->health() : CUDA_SUCCESS;
}

}  // namespace simcuda
