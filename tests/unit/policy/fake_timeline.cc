#include "unit/policy/fake_timeline.h"

#include <unistd.h>

#include <algorithm>

namespace ration::test {

void FakeTimeline::submit(CUcontext context) {
  const std::lock_guard lock(mutex_);
  ++submitted_[context];
}

void FakeTimeline::finish(CUcontext context) {
  const std::lock_guard lock(mutex_);
  finished_[context] = submitted_[context];
}

void FakeTimeline::finish(const Point &point) {
  const std::lock_guard lock(mutex_);
  for (const auto &[context, pieces] : point) {
    finished_[context] = std::max(finished_[context], pieces);
  }
}

FakeTimeline::Point FakeTimeline::submitted() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

bool FakeTimeline::is_behind(const Point &point) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(point.begin(), point.end(), [this](const auto &part) {
    const auto finished = finished_.find(part.first);
    return part.second > (finished != finished_.end() ? finished->second : 0);
  });
}

void FakeTimeline::make_green(CUcontext green, CUcontext primary) {
  const std::lock_guard lock(mutex_);
  primary_[green] = primary;
}

CUcontext FakeTimeline::primary_of(CUcontext context) const {
  const std::lock_guard lock(mutex_);
  const auto found = primary_.find(context);
  return found != primary_.end() ? found->second : context;
}

void FakeTimeline::end(CUcontext context) {
  const std::lock_guard lock(mutex_);
  for (const auto &[part, pieces] : all_of(context)) {
    finished_[part] = pieces;
  }
  primary_.erase(context);
  std::erase_if(events_, [context](const auto &event) { return event.second.owner == context; });
  std::erase_if(captures_, [context](const auto &capture) { return capture.second.context == context; });
  std::erase_if(streams_, [context](const auto &stream) { return stream.second == context; });
}

FakeTimeline::Point FakeTimeline::all_of(CUcontext context) const {
  Point all;
  for (const auto &[part, pieces] : submitted_) {
    const auto green = primary_.find(part);
    if (part == context || (green != primary_.end() && green->second == context)) {
      all[part] = pieces;
    }
  }
  return all;
}

CUevent FakeTimeline::new_event(CUcontext owner) {
  const std::lock_guard lock(mutex_);
  const CUevent event = reinterpret_cast<CUevent>(next_handle_ += 16);
  events_[event] = {owner, false, {}};
  return event;
}

bool FakeTimeline::destroy_event(CUevent event) {
  const std::lock_guard lock(mutex_);
  dead_uses_ += events_.count(event) == 0 ? 1 : 0;
  return events_.erase(event) == 1;
}

bool FakeTimeline::has_event(CUevent event) {
  const std::lock_guard lock(mutex_);
  dead_uses_ += events_.count(event) == 0 ? 1 : 0;
  return events_.count(event) != 0;
}

CUcontext FakeTimeline::owner_of(CUevent event) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  return found != events_.end() ? found->second.owner : nullptr;
}

std::size_t FakeTimeline::live_events() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

std::pair<CUstream, int> FakeTimeline::key(CUstream stream) {
  return {stream, stream == CU_STREAM_PER_THREAD ? gettid() : 0};
}

CUresult FakeTimeline::spoil_in(CUcontext context) {
  CUresult result = CUDA_SUCCESS;
  for (auto &[stream, capture] : captures_) {
    if (capture.context == context || context == nullptr) {
      spoilt_ += capture.status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? 1 : 0;
      capture.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

CUresult FakeTimeline::record(CUcontext context, CUevent event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end() || found->second.owner != context) {
    ++dead_uses_;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult result = spoil_in(context); result != CUDA_SUCCESS) {
    return result;
  }
  found->second.of_context = true;
  found->second.at = all_of(context);
  return CUDA_SUCCESS;
}

bool FakeTimeline::point_of(CUevent event, Point &point) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end() || !found->second.of_context) {
    return false;
  }
  point = found->second.at;
  return true;
}

FakeTimeline::Point FakeTimeline::submitted_to(CUcontext context) const {
  const std::lock_guard lock(mutex_);
  return all_of(context);
}

CUresult FakeTimeline::may_synchronise(CUcontext context) {
  const std::lock_guard lock(mutex_);
  return spoil_in(context);
}

CUstream FakeTimeline::open_stream(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const CUstream stream = reinterpret_cast<CUstream>(next_handle_ += 16);
  streams_[stream] = context;
  return stream;
}

void FakeTimeline::close_stream(CUstream stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
  captures_.erase(key(stream));
}

CUcontext FakeTimeline::context_of(CUstream stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  return found != streams_.end() ? found->second : nullptr;
}

CUresult FakeTimeline::begin_capture(CUstream stream, CUcontext current) {
  const std::lock_guard lock(mutex_);
  if (captures_.count(key(stream)) != 0) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  const auto found = streams_.find(stream);
  captures_[key(stream)] = {found != streams_.end() ? found->second : current, gettid(),
                            CU_STREAM_CAPTURE_STATUS_ACTIVE};
  return CUDA_SUCCESS;
}

CUresult FakeTimeline::end_capture(CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = captures_.find(key(stream));
  if (found == captures_.end()) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  const bool elsewhere = found->second.thread != gettid();
  const bool whole = found->second.status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  captures_.erase(found);
  if (elsewhere) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  return whole ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult FakeTimeline::capture_info(CUstream stream, CUstreamCaptureStatus *status) {
  const std::lock_guard lock(mutex_);
  if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD && streams_.count(stream) == 0) {
    ++dead_uses_;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto found = captures_.find(key(stream));
  *status = found != captures_.end() ? found->second.status : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

void FakeTimeline::spoil(CUstream stream) {
  const std::lock_guard lock(mutex_);
  captures_.at(key(stream)).status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

CUresult FakeTimeline::guard(const std::string &function) {
  static const std::set<std::string> unsafe = {"cuMemAlloc_v2", "cuMemFree_v2",     "cuEventQuery",
                                               "cuEventCreate", "cuCtxSynchronize", "cuEventSynchronize"};
  const std::lock_guard lock(mutex_);
  const bool concerned = std::any_of(captures_.begin(), captures_.end(), [](const auto &capture) {
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || capture.second.thread == gettid();
  });
  if (!concerned || mode == CU_STREAM_CAPTURE_MODE_RELAXED || unsafe.count(function) == 0) {
    return CUDA_SUCCESS;
  }
  forbidden_.insert(function);
  return spoil_in(nullptr);
}

int FakeTimeline::spoilt() const {
  const std::lock_guard lock(mutex_);
  return spoilt_;
}

int FakeTimeline::dead_uses() const {
  const std::lock_guard lock(mutex_);
  return dead_uses_;
}

std::set<std::string> FakeTimeline::forbidden() const {
  const std::lock_guard lock(mutex_);
  return forbidden_;
}

}  // namespace ration::test
