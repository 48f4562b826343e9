#include "policy/contexts/fence_tracker.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/wait.h"

namespace ration::policy {
namespace {

using driver::real;

bool has_passed(const Context &context, std::uint64_t number) {
  return context.ended_by.load(std::memory_order_acquire) != nullptr ||
         context.passed.load(std::memory_order_acquire) >= number;
}

CUcontext current_context() {
  CUcontext current = nullptr;
  return real.cuCtxGetCurrent(&current) == CUDA_SUCCESS ? current : nullptr;
}

// Lends the thread a context if it has none, because without one it cannot query events.
class SomeContext {
 public:
  explicit SomeContext(CUcontext context) : caller_(current_context()) {
    if (caller_ == nullptr) {
      lent_.emplace(context);
    }
  }
  CUcontext caller() const { return caller_; }

 private:
  const CUcontext caller_;
  std::optional<CurrentFor> lent_;
};

// Whether the error breaks a context: then every call in it returns this error, and its work no longer runs (cuda.h:
// the process must be relaunched to continue).
bool breaks_context(CUresult error) {
  switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

// Whether `error` shows that `context` is broken, and the caller's current context is a different one. The error may be
// that of the caller's context, so the driver is asked again inside `context`. REQUIRES: it is pinned.
template <class Ask>
bool is_broken_for_others(const Context &context, CUcontext caller, CUresult error, const Ask &ask) {
  if (!breaks_context(error) || caller == context.handle) {
    return false;
  }
  const CurrentFor own(context.handle);
  return own && breaks_context(ask());
}

// The driver's result for an event of the context. On success, notes that the fence `number` has passed. REQUIRES: it
// is pinned.
template <class Ask>
CUresult answer_about(Context &context, std::uint64_t number, const Ask &ask) {
  const SomeContext some(context.handle);
  const CUresult result = ask();
  if (result == CUDA_SUCCESS) {
    FenceTracker::passed(context, number);
  }
  return is_broken_for_others(context, some.caller(), result, ask) ? CUDA_SUCCESS : result;
}

}  // namespace

bool FenceTracker::has_events() {
  return real.cuCtxRecordEvent.present() && real.cuEventCreate.present() && real.cuEventQuery.present() &&
         real.cuEventSynchronize.present() && real.cuEventDestroy_v2.present();
}

bool FenceTracker::can_tell() {
  return real.cuCtxGetCurrent.present() && (has_events() || real.cuCtxSynchronize.present());
}

// `passed` never falls, so an outdated value is only too low.
void FenceTracker::passed(Context &context, std::uint64_t since) {
  std::uint64_t before = context.passed.load(std::memory_order_relaxed);
  while (before < since && !context.passed.compare_exchange_weak(before, since, std::memory_order_release)) {
  }
}

CUevent FenceTracker::event_for(const ContextRef &context, CUresult &error) noexcept {
  {
    Guard guard(mutex_);
    const auto spare = spare_.find(context.get());
    if (spare != spare_.end() && !spare->second.empty()) {
      const CUevent event = spare->second.back();
      spare->second.pop_back();
      return event;
    }
  }
  const CurrentFor current(context->handle);  // an event belongs to the context that is current when it is created
  CUevent event = nullptr;
  error = current ? real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC) : current.error();
  return error == CUDA_SUCCESS ? event : nullptr;
}

// REQUIRES: its context is pinned.
CUresult FenceTracker::record(Fence::Mark &mark) noexcept {
  CUresult result = CUDA_SUCCESS;
  const auto ask = [&] {
    mark.event = mark.event != nullptr ? mark.event : event_for(mark.context, result);
    return mark.event != nullptr ? real.cuCtxRecordEvent(mark.context->handle, mark.event) : result;
  };
  result = ask();
  mark.broken = is_broken_for_others(*mark.context, current_context(), result, ask);
  return mark.broken ? CUDA_SUCCESS : result;
}

// Records one event for each context. REQUIRES: marks hold the contexts, each pinned; no capture can begin.
CUresult FenceTracker::record(Fence &fence) noexcept {
  for (Fence::Mark &mark : fence.marks) {
    if (mark.reach != nullptr) {
      continue;
    }
    const CUresult result = record(mark);
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {  // we did not see how: none of its work runs any more
      contexts_.forget_unseen(mark.context);
    } else if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

ReachEvent::~ReachEvent() {
  if (event != nullptr) {
    fences.spare(context, event);
  }
}

void FenceTracker::end_reach(const ContextRef &context) noexcept try {
  if (!by_events()) {
    return;
  }
  auto ended = std::make_shared<ReachEvent>(*this, context);
  if (!captures_.enter_if_quiet()) {
    return;
  }
  CUresult error = CUDA_ERROR_INVALID_CONTEXT;
  {
    const Pin pin(*context);
    ended->number = contexts_.tick();
    ended->event = pin ? event_for(context, error) : nullptr;
    error = ended->event != nullptr ? real.cuCtxRecordEvent(context->handle, ended->event) : error;
  }
  captures_.leave();
  if (error != CUDA_SUCCESS) {
    return;
  }
  std::shared_ptr<const ReachEvent> made = std::move(ended);  // the old one is destroyed after the lock is released
  Guard guard(mutex_);
  if (context->ended_by.load(std::memory_order_acquire) == nullptr) {
    std::shared_ptr<const ReachEvent> &latest = reach_events_[context.get()];
    if (latest == nullptr || latest->number < made->number) {
      latest.swap(made);
    }
  }
} catch (...) {  // no host memory, so fences record their own events
}

std::shared_ptr<const ReachEvent> FenceTracker::reach_event(const Context &context, int device) {
  if (device < 0 || !by_events() || contexts_.may_reach_at_any_time(context, device)) {
    return nullptr;
  }
  const std::uint64_t until = context.reach.until(device);
  Guard guard(mutex_);
  const auto found = reach_events_.find(&context);
  return found != reach_events_.end() && found->second->number >= until ? found->second : nullptr;
}

FenceTracker::Taken FenceTracker::take(Fence &fence, CUresult &error, int device) noexcept try {
  std::vector<ContextRef> live = contexts_.live();
  std::erase_if(live, [&](const ContextRef &context) { return device >= 0 && !contexts_.may_reach(*context, device); });
  fence.marks.reserve(live.size());
  std::erase_if(live, [&](ContextRef &context) {
    std::shared_ptr<const ReachEvent> reach = reach_event(*context, device);
    if (reach == nullptr) {
      return false;
    }
    const CUevent event = reach->event;
    fence.marks.push_back({std::move(context), event, false, std::move(reach)});
    return true;
  });
  // The number is taken before the first event is recorded. So an event with a later number was recorded after this
  // fence, and a synchronise that began at this number or later covers it.
  fence.number = contexts_.tick();
  if (by_events()) {
    const Taken taken = take_by_events(fence, live, error);
    if (taken == Taken::taken || taken == Taken::failed) {
      heed(error, failed_records_);
    }
    return by_events() ? taken : take(fence, error, device);
  }
  for (ContextRef &context : live) {
    fence.marks.push_back({std::move(context)});
  }
  error = CUDA_SUCCESS;
  return Taken::taken;
} catch (...) {
  fence.marks.clear();
  error = CUDA_ERROR_OUT_OF_MEMORY;
  return Taken::failed;
}

void FenceTracker::heed(CUresult answer, std::atomic<unsigned> &failed_in_a_row) {
  if (answer == CUDA_SUCCESS || answer == CUDA_ERROR_NOT_READY) {
    failed_in_a_row.store(0, std::memory_order_relaxed);
  } else if (!breaks_context(answer) && real.cuCtxSynchronize.present() &&
             (answer == CUDA_ERROR_NOT_SUPPORTED ||
              failed_in_a_row.fetch_add(1, std::memory_order_relaxed) + 1 >= kMostFailed)) {
    events_refused_.store(true, std::memory_order_relaxed);
  }
}

// Pins all contexts, so that none is destroyed during a call that uses it.
FenceTracker::Taken FenceTracker::take_by_events(Fence &fence, std::vector<ContextRef> &live, CUresult &error) {
  error = CUDA_SUCCESS;
  if (!captures_.enter()) {
    recycle(fence);
    return Taken::capturing;
  }
  bool all_pinned = true;
  for (ContextRef &context : live) {
    if (context->pin()) {
      fence.marks.push_back({std::move(context)});
    } else if (context->ended_by.load(std::memory_order_acquire) == nullptr) {
      all_pinned = false;  // being destroyed, which the driver may still refuse
    }
  }
  error = all_pinned ? record(fence) : CUDA_SUCCESS;
  captures_.leave();
  for (Fence::Mark &mark : fence.marks) {
    if (mark.reach == nullptr) {
      mark.context->unpin();
    }
  }
  if (all_pinned && error == CUDA_SUCCESS) {
    return Taken::taken;
  }
  recycle(fence);
  if (error == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {  // a capture that began without our seeing it
    return Taken::capturing;
  }
  return all_pinned ? Taken::failed : Taken::ending;
}

CUresult FenceTracker::query_mark(const Fence::Mark &mark, std::uint64_t number) {
  if (mark.broken || has_passed(*mark.context, number)) {
    return CUDA_SUCCESS;
  }
  if (mark.event == nullptr || events_refused_.load(std::memory_order_relaxed)) {
    return CUDA_ERROR_NOT_READY;
  }
  const Pin pin(*mark.context);
  if (!pin) {
    return has_passed(*mark.context, number) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  return answer_about(*mark.context, number, [&] { return real.cuEventQuery(mark.event); });
}

template <class Ask>
CUresult FenceTracker::each_mark(const Fence &fence, const Context *only, const Ask &ask) {
  for (const Fence::Mark &mark : fence.marks) {
    if (only != nullptr && mark.context.get() != only) {
      continue;
    }
    const CUresult result = ask(mark, mark.reach != nullptr ? mark.reach->number : fence.number);
    heed(result, failed_queries_);
    if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult FenceTracker::query([[maybe_unused]] const Fence &fence, [[maybe_unused]] const Context *only) {
#ifdef RATION_BREAK_QUARANTINE  // as in quarantine.cc
  return CUDA_SUCCESS;
#endif
  return each_mark(fence, only,
                   [this](const Fence::Mark &mark, std::uint64_t number) { return query_mark(mark, number); });
}

CUresult FenceTracker::poll(const Fence &fence, FunctionRef<bool()> enough) {
  const std::uint64_t start = now_ns();
  for (Backoff backoff;; backoff.sleep()) {
    {
      const CaptureExclusion exclusion(captures_);
      const CUresult passed = query(fence);
      if (passed != CUDA_ERROR_NOT_READY || now_ns() - start >= kIdlePatienceNs) {
        return passed;
      }
    }
    if (enough()) {
      return CUDA_ERROR_NOT_READY;
    }
  }
}

bool FenceTracker::is_idle(int device) {
  if (!by_events()) {
    return false;
  }
  const CaptureExclusion exclusion(captures_);
  Fence fence;
  CUresult error = CUDA_SUCCESS;
  const bool idle = take(fence, error, device) == Taken::taken && query(fence) == CUDA_SUCCESS;
  recycle(fence);
  return idle;
}

CUresult FenceTracker::synchronise(Context &context) {
  if (!captures_.enter()) {
    return CUDA_ERROR_NOT_READY;
  }
  const std::uint64_t began = now();
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  {
    const CurrentFor current(context.handle);
    if (current) {
      result = real.cuCtxSynchronize();
    }
  }
  captures_.leave();
  if (result == CUDA_SUCCESS) {
    passed(context, began);
  }
  return result;
}

CUresult FenceTracker::wait_for_mark(const Fence::Mark &mark, std::uint64_t number) {
  for (Waiter waiter;;) {
    const CUresult now = query_mark(mark, number);
    if (now != CUDA_ERROR_NOT_READY) {
      return now;
    }
    const Pin pin(*mark.context);
    if (!pin) {
      if (has_passed(*mark.context, number)) {
        return CUDA_SUCCESS;
      }
      waiter.pause();  // it is being destroyed; whether the driver refuses is known soon
      continue;
    }
    if (mark.event == nullptr || events_refused_.load(std::memory_order_relaxed)) {
      const CUresult result = synchronise(*mark.context);
      const auto same = [&] { return result; };  // this was asked inside the context already
      return is_broken_for_others(*mark.context, current_context(), result, same) ? CUDA_SUCCESS : result;
    }
    return answer_about(*mark.context, number, [&] { return real.cuEventSynchronize(mark.event); });
  }
}

CUresult FenceTracker::wait(const Fence &fence, const Context *only) {
  const RelaxedCapture relaxed;
  return each_mark(fence, only,
                   [this](const Fence::Mark &mark, std::uint64_t number) { return wait_for_mark(mark, number); });
}

void FenceTracker::recycle(Fence &fence) noexcept {
  for (Fence::Mark &mark : fence.marks) {
    if (mark.event != nullptr && mark.reach == nullptr) {
      spare(mark.context, mark.event);
    }
  }
  fence.marks.clear();
  fence.number = 0;
}

void FenceTracker::spare(const ContextRef &context, CUevent event) noexcept {
  try {
    Guard guard(mutex_);
    // The events of a context end with it. forget() is called after its end, so either this check or forget() drops the
    // event.
    if (context->ended_by.load(std::memory_order_acquire) == nullptr) {
      spare_[context.get()].push_back(event);
    }
    return;
  } catch (...) {
  }
  const Pin pin(*context);
  if (pin) {
    real.cuEventDestroy_v2(event);
  }
}

void FenceTracker::forget(const ContextRef &context) {
  std::shared_ptr<const ReachEvent> dropped;  // destroyed without the lock
  Guard guard(mutex_);
  spare_.erase(context.get());
  if (const auto found = reach_events_.find(context.get()); found != reach_events_.end()) {
    dropped = std::move(found->second);
    reach_events_.erase(found);
  }
}

}  // namespace ration::policy
