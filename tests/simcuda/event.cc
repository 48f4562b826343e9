#include "tests/simcuda/event.h"

#include <chrono>

#include "implemented.h"
#include "tests/simcuda/capture.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/mem_pool.h"

namespace simcuda {
namespace {

constexpr unsigned kExternal = 1;  // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL: nodes that are not simulated

// A call cannot wait for or query a captured event; the attempt invalidates a capture in progress. Once that is over,
// the event is one of no work.
CUresult may_ask(const Event &event) {
  if (event.capture == nullptr) return may_act_unseen();
  if (event.capture->over()) return CUDA_ERROR_INVALID_VALUE;
  event.capture->invalidated = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

void capture_event(Event &event, const Stream &stream) {
  record(event, {}, nullptr);
  event.capture = stream.capture;
  event.frontier = stream.frontier;
}

// Captured and uncaptured work cannot depend on each other; nor can two captures.
CUresult wait_in_capture(const std::shared_ptr<Stream> &stream, const Event &event) {
  if (event.capture == nullptr) return refuse(*stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (event.capture->over()) {
    if (stream->capture != nullptr) stream->capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (event.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture != nullptr && stream->capture != event.capture) {
    event.capture->invalidated = true;
    return refuse(*stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (stream->kind == Stream::Kind::kLegacy) {
    event.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  join(*stream, event.capture, event.frontier);
  return CUDA_SUCCESS;
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CUresult find_event(CUevent handle, std::shared_ptr<Event> *event) {
  const auto found = driver().events.find(handle);
  if (found == driver().events.end()) return CUDA_ERROR_INVALID_HANDLE;
  *event = found->second;
  return CUDA_SUCCESS;
}

void record(Event &event, std::vector<Mark> marks, std::shared_ptr<std::atomic<std::int64_t>> passed_ns) {
  event.recorded = true;
  event.marks = std::move(marks);
  event.passed_ns = std::move(passed_ns);
  event.capture.reset();
  event.frontier.clear();
}

void forget_events_of(Context &context) {
  std::erase_if(driver().events, [&](const auto &entry) { return entry.second->context == &context; });
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (phEvent == nullptr || (Flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((Flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  Lock lock(driver().mutex);
  Context *context = nullptr;
  if (const CUresult error = current(lock, &context); error != CUDA_SUCCESS) return error;
  auto event = std::make_shared<Event>();
  event->context = context->root;
  event->flags = Flags;
  *phEvent = reinterpret_cast<CUevent>(event.get());
  driver().events.emplace(event.get(), std::move(event));
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return simcuda::cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  if ((flags & ~kExternal) != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> event;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = find_event(hEvent, &event); error != CUDA_SUCCESS) return error;
  if (event->context != stream->context->root) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (flags != 0) return stream->capture == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  if (stream->capture != nullptr) {
    capture_event(*event, *stream);
    return CUDA_SUCCESS;
  }
  auto passed_ns = std::make_shared<std::atomic<std::int64_t>>(0);
  const Mark mark = submit(lock, stream, Pace::kInstant, [passed_ns] { passed_ns->store(now_ns()); });
  record(*event, {mark}, passed_ns);
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent hEvent) {
  const Lock lock(driver().mutex);
  std::shared_ptr<Event> event;
  if (const CUresult error = find_event(hEvent, &event); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_ask(*event); error != CUDA_SUCCESS) return error;
  return event->reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent hEvent) {
  Lock lock(driver().mutex);
  std::shared_ptr<Event> event;
  if (const CUresult error = find_event(hEvent, &event); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_ask(*event); error != CUDA_SUCCESS) return error;
  const std::vector<Mark> marks = event->marks;  // a later record does not prolong this wait
  for (const Mark &mark : marks) wait(lock, mark);
  after_waiting(lock);
  return event->context->health();
}

CUresult cuEventDestroy(CUevent hEvent) {
  return simcuda::cuEventDestroy_v2(hEvent);
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  const Lock lock(driver().mutex);
  return driver().events.erase(hEvent) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
  return simcuda::cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
  if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  std::shared_ptr<Event> start, end;
  if (const CUresult error = find_event(hStart, &start); error != CUDA_SUCCESS) return error;
  if (const CUresult error = find_event(hEnd, &end); error != CUDA_SUCCESS) return error;
  for (const auto &event : {start, end}) {
    if (!event->recorded || (event->flags & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (!start->reached() || !end->reached()) return CUDA_ERROR_NOT_READY;
  *pMilliseconds = static_cast<float>(static_cast<double>(end->passed_ns->load() - start->passed_ns->load()) / 1e6);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  if ((Flags & ~kExternal) != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock(driver().mutex);
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> event;
  if (const CUresult error = find_stream(lock, hStream, &stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = find_event(hEvent, &event); error != CUDA_SUCCESS) return error;
  if (const CUresult error = may_use(*stream); error != CUDA_SUCCESS) return error;
  if (Flags != 0) return stream->capture == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  if (stream->capture != nullptr || event->capture != nullptr) return wait_in_capture(stream, *event);
  if (!event->reached())
    submit(
        lock, stream, Pace::kInstant, [] {}, event->marks);
  return CUDA_SUCCESS;
}

}  // namespace simcuda
