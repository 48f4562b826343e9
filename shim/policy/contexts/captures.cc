#include "policy/contexts/captures.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/held.h"
#include "base/thread_number.h"
#include "base/wait.h"

namespace ration::policy {
namespace {

using driver::real;

bool thread_is_gone(int thread) {
  return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

// Whether a stream captures, or the driver does not report it.
bool asks_as_running(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return capture_status(stream, status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

CUresult capture_status(CUstream stream, CUstreamCaptureStatus &status) {
  if (real.cuStreamGetCaptureInfo.present()) {
    cuuint64_t id = 0;
    return real.cuStreamGetCaptureInfo(stream, &status, &id);
  }
  return real.cuStreamIsCapturing.present() ? real.cuStreamIsCapturing(stream, &status) : CUDA_ERROR_NOT_SUPPORTED;
}

RelaxedCapture::RelaxedCapture()
    : exchanged_(real.cuThreadExchangeStreamCaptureMode.present() &&
                 real.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {
  if (exchanged_) {
    held::note(exchange_back, reinterpret_cast<void *>(static_cast<std::uintptr_t>(mode_)));
  }
}

RelaxedCapture::~RelaxedCapture() {
  void *const mode = reinterpret_cast<void *>(static_cast<std::uintptr_t>(mode_));
  if (exchanged_ && held::forget(exchange_back, mode)) {
    exchange_back(mode);
  }
}

void RelaxedCapture::exchange_back(void *mode) noexcept {
  auto before = static_cast<CUstreamCaptureMode>(reinterpret_cast<std::uintptr_t>(mode));
  real.cuThreadExchangeStreamCaptureMode(&before);
}

bool Captures::same(const Capture &one, const Capture &other) {
  return one.stream == other.stream &&
         (one.stream != CU_STREAM_PER_THREAD || (one.thread == other.thread && one.context == other.context));
}

template <int Captures::*kCount>
void Captures::count_in() {
  ++(this->*kCount);
  held::note(left<kCount>, this);
}

template <int Captures::*kCount>
void Captures::count_out() {
  if (held::forget(left<kCount>, this)) {
    left<kCount>(this);
  }
}

template <int Captures::*kCount>
void Captures::left(void *captures) noexcept {
  auto &all = *static_cast<Captures *>(captures);
  Guard guard(all.mutex_);
  --(all.*kCount);
  wake_waiters();
}

void Captures::begin_capture() {
  for (Waiter waiter;;) {
    {
      Guard guard(mutex_);
      if (quiet_ == 0) {
        count_in<&Captures::beginning_>();
        return;
      }
    }
    waiter.pause();  // our queries are short; our synchronise ends with the work before it
  }
}

bool Captures::begin_unknown() {
  begin_capture();
  const bool first = !has_unknown_.exchange(true);
  {
    Guard guard(mutex_);
    lost_one_ = true;
  }
  count_out<&Captures::beginning_>();
  return first;
}

void Captures::finish_begin(CUstream stream, CUresult result, const ContextRef &context) {
  std::list<Capture> begun;
  try {
    if (result == CUDA_SUCCESS) {
      begun.push_back({stream, context, thread_number(), 0});
    }
  } catch (...) {  // no host memory
  }
  {
    Guard guard(mutex_);
    if (begun.empty()) {
      lost_one_ |= result == CUDA_SUCCESS;
    } else {
      captures_.remove_if([&](const Capture &capture) { return same(capture, begun.front()); });
      begun.front().number = ++last_number_;
      captures_.splice(captures_.end(), begun);
    }
  }
  count_out<&Captures::beginning_>();
}

std::uint64_t Captures::number_of(CUstream stream, const ContextRef &context) {
  const Capture meant{stream, context, thread_number(), 0};
  Guard guard(mutex_);
  const auto found =
      std::find_if(captures_.begin(), captures_.end(), [&](const Capture &capture) { return same(capture, meant); });
  return found != captures_.end() ? found->number : 0;
}

void Captures::finish_end(std::uint64_t number, CUresult result) {
  // An end-capture call on a stream that joined a capture does not change it. A call from the wrong thread invalidates
  // it (H100, H200, driver 580), which the next query will show. After every other result the capture is over, with or
  // without a graph.
  if (result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD || result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
    return;
  }
  Guard guard(mutex_);
  captures_.remove_if([number](const Capture &capture) { return capture.number == number; });
}

void Captures::forget(CUstream stream) {
  for (Waiter waiter;;) {
    {
      Guard guard(mutex_);
      if (captures_.empty() || asking_ == 0) {
        captures_.remove_if([&](const Capture &capture) { return capture.stream == stream; });
        return;
      }
    }
    waiter.pause();
  }
}

void Captures::forget(const ContextRef &context) {
  Guard guard(mutex_);
  captures_.remove_if([&](const Capture &capture) { return capture.context == context; });
}

// Asks the driver if possible. The per-thread stream of another thread can only be queried by that thread, so it counts
// as capturing while the thread lives. The context is pinned, because its streams end with it.
bool Captures::may_still_run(const Capture &capture) {
  if (capture.context == nullptr) {
    return asks_as_running(capture.stream);
  }
  if (capture.context->ended_by.load(std::memory_order_acquire) != nullptr) {
    return false;
  }
  const Pin pin(*capture.context);
  if (!pin) {
    return true;  // if it has ended, the next query will see that
  }
  if (capture.stream != CU_STREAM_PER_THREAD) {
    return asks_as_running(capture.stream);
  }
  if (capture.thread != thread_number()) {
    return !thread_is_gone(capture.thread);
  }
  const CurrentFor current(capture.context->handle);
  return !current || asks_as_running(capture.stream);
}

void Captures::confirm() {
  std::vector<Capture> known;
  {
    Guard guard(mutex_);
    known.assign(captures_.begin(), captures_.end());
  }
  const RelaxedCapture relaxed;
  for (const Capture &each : known) {
    if (!may_still_run(each)) {
      Guard guard(mutex_);
      captures_.remove_if([&](const Capture &capture) { return capture.number == each.number; });
    }
  }
}

bool Captures::enter() {
  Waiter waiter;
  for (bool confirmed = false;;) {
    bool ask = false;
    {
      Guard guard(mutex_);
      if (lost_one_ || (confirmed && !captures_.empty())) {
        return false;
      }
      ask = !captures_.empty();
      if (!ask && beginning_ == 0) {
        count_in<&Captures::quiet_>();
        return true;
      }
      if (ask) {
        count_in<&Captures::asking_>();
      }
    }
    if (!ask) {  // another thread is inside its begin-capture call
      waiter.pause();
      continue;
    }
    try {
      confirm();
    } catch (...) {  // no host memory to ask, so all of them count as running
    }
    confirmed = true;
    count_out<&Captures::asking_>();
  }
}

bool Captures::enter_if_quiet() {
  Guard guard(mutex_);
  const bool quiet = !lost_one_ && beginning_ == 0 && captures_.empty();
  if (quiet) {
    count_in<&Captures::quiet_>();
  }
  return quiet;
}

void Captures::leave() {
  count_out<&Captures::quiet_>();
}

bool Captures::running() {
  Guard guard(mutex_);
  return lost_one_ || beginning_ > 0 || !captures_.empty();
}

bool Captures::run_elsewhere_only() {
  const int self = thread_number();
  Guard guard(mutex_);
  return !lost_one_ && !captures_.empty() &&
         std::none_of(captures_.begin(), captures_.end(),
                      [self](const Capture &capture) { return capture.thread == self; });
}

bool is_captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const RelaxedCapture relaxed;
  return capture_status(stream, status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult forbidden_by_captures() {
  return real.cuMemFree_v2.present() ? real.cuMemFree_v2(0) : CUDA_SUCCESS;
}

CUresult wrong_with_stream(CUstream stream) {
  // For null the driver returns INVALID_VALUE, but only after it has checked the stream.
  const CUresult answer = real.cuMemFreeAsync.present() ? real.cuMemFreeAsync(0, stream) : CUDA_SUCCESS;
  return answer == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : answer;
}

}  // namespace ration::policy
