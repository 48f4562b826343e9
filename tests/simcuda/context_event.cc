// Events of a whole context, and contexts that wait for an event. Layer: capture.h, event.h. Threads: any.
#include <utility>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/context_event.h"
#include "tests/simcuda/driver.h"

namespace simcuda {
namespace {

template <class Body>
CUresult with_both(CUcontext handle, CUevent hEvent, Body body) {
  Lock lock(driver().mutex);
  Context *context = find_context(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  std::shared_ptr<Event> event;
  if (const CUresult error = find_event(hEvent, &event); error != CUDA_SUCCESS) return error;
  return body(lock, *context, *event);
}

}  // namespace

// Streams do not wait for each other because of it. A separate stream records its time, needed only for an event with
// timing.
CUresult record_event(Lock &lock, Context &context, Event &event) {
  if (event.context != context.root) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = may_record(context); error != CUDA_SUCCESS) return error;
  std::vector<Mark> marks = marks_of(context);
  if ((event.flags & CU_EVENT_DISABLE_TIMING) != 0) {
    record(event, std::move(marks), nullptr);
    return CUDA_SUCCESS;
  }
  if (context.markers == nullptr) context.markers = new_stream(context, Stream::Kind::kNonBlocking, 0);
  auto passed_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  const Mark mark = submit(
      lock, context.markers, Pace::kInstant, [passed_ns] { passed_ns->store(now_ns()); }, std::move(marks));
  record(event, {mark}, passed_ns);
  return CUDA_SUCCESS;
}

CUresult await_event(Lock &, Context &context, const Event &event) {
  if (event.capture != nullptr) {
    event.capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (const CUresult error = may_ask(context); error != CUDA_SUCCESS) return error;
  std::erase_if(context.awaited, [](const Mark &mark) { return mark.reached(); });
  for (const Mark &mark : event.marks) {
    if (!mark.reached()) context.awaited.push_back(mark);
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return with_both(hCtx, hEvent, record_event);
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return with_both(hCtx, hEvent, await_event);
}

}  // namespace simcuda
