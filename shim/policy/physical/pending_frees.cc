#include "policy/physical/pending_frees.h"

#include <utility>

#include "base/take_out.h"
#include "base/wait.h"
#include "policy/contexts/captures.h"

namespace ration::policy {
namespace {

using driver::real;

// An event recorded after all work that is in `stream` now, or nullptr.
CUevent record_event(CUstream stream) {
  if (!real.cuEventCreate.present() || !real.cuEventRecord.present() || !real.cuEventQuery.present() ||
      !real.cuEventDestroy_v2.present()) {
    return nullptr;
  }
  CUevent event = nullptr;
  if (real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (real.cuEventRecord(event, stream) != CUDA_SUCCESS) {
    real.cuEventDestroy_v2(event);
    return nullptr;
  }
  return event;
}

}  // namespace

void PendingFrees::finish(const Pending &pending) {
  ledger_.account(pending.device).release(pending.bytes);
  for (const PhysicalMemory::PieceRef &piece : pending.pieces) {
    owner_.end_piece("cuMemMapArrayAsync", piece);
  }
}

void PendingFrees::add(Pending pending, CUstream stream) noexcept {
  const RelaxedCapture relaxed;
  const CUevent event = pending.event = record_event(stream);
  if (event == nullptr && pending.owner != nullptr) {
    pending.context = pending.owner;  // the stream's context may be one that has ended
  }
  if (event != nullptr && real.cuEventQuery(event) == CUDA_SUCCESS) {
    real.cuEventDestroy_v2(event);
    finish(pending);
    return;
  }
  std::list<Pending> added;
  try {
    added.emplace_back();
  } catch (...) {  // no host memory for an entry: waits here, or it stays charged for ever
    if (event != nullptr && real.cuEventSynchronize(event) == CUDA_SUCCESS) {
      real.cuEventDestroy_v2(event);
      finish(pending);
    }
    return;
  }
  added.front() = std::move(pending);
  {
    Guard guard(mutex_);
    enter(added);
  }
  finish(added);
}

void PendingFrees::enter(std::list<Pending> &entries) noexcept {
  const auto is_pending = [](const Pending &one) {
    return one.context->ended_by.load(std::memory_order_acquire) == nullptr;
  };
  std::list<Pending> kept = take_out(entries, is_pending);
  pending_.splice(pending_.end(), kept);
}

void PendingFrees::finish(const std::list<Pending> &ended) noexcept {
  for (const Pending &pending : ended) {
    finish(pending);
  }
}

std::uint64_t PendingFrees::bytes_of(const Pending &pending) {
  std::uint64_t bytes = pending.bytes;
  for (const PhysicalMemory::PieceRef &piece : pending.pieces) {
    bytes += piece->bytes;
  }
  return bytes;
}

std::uint64_t PendingFrees::bytes(int device) {
  Guard guard(mutex_);
  std::uint64_t bytes = releasing_bytes_[device];
  for (const Pending &pending : pending_) {
    bytes += pending.device == device && pending.event != nullptr ? bytes_of(pending) : 0;
  }
  return bytes;
}

bool PendingFrees::release_if_passed(const Pending &pending, std::uint64_t until_ns) {
  // The events of a context end with it, and must not be used after that.
  for (Backoff backoff; pending.context->ended_by.load(std::memory_order_acquire) == nullptr; backoff.sleep()) {
    const CUresult passed = real.cuEventQuery(pending.event);
    if (passed == CUDA_SUCCESS) {
      real.cuEventDestroy_v2(pending.event);
      break;
    }
    if (passed != CUDA_ERROR_NOT_READY || until_ns == 0 || now_ns() >= until_ns) {
      return false;  // not yet, or the context failed: its memory is freed with the context
    }
  }
  finish(pending);
  return true;
}

bool PendingFrees::release_passed(int device, std::uint64_t until_ns) {
  std::list<Pending> taken;  // taken out so that the driver is asked without the lock
  bool others_released = false;
  std::uint64_t bytes = 0;
  for (Waiter waiter;;) {
    {
      Guard guard(mutex_);
      taken = take_out(pending_, [&](const Pending &one) { return one.device == device && one.event != nullptr; });
      if (!taken.empty()) {
        ++releasing_[device];
        for (const Pending &pending : taken) {
          bytes += bytes_of(pending);
        }
        releasing_bytes_[device] += bytes;
        break;
      }
      if (until_ns == 0 || releasing_[device] == 0) {
        return others_released;
      }
    }
    others_released = true;
    waiter.pause();  // another thread waits for the device, or is about to put entries back
  }
  const RelaxedCapture relaxed;
  const std::size_t released =
      taken.remove_if([&](const Pending &pending) { return release_if_passed(pending, until_ns); });
  {
    Guard guard(mutex_);
    enter(taken);
    --releasing_[device];
    releasing_bytes_[device] -= bytes;
    wake_waiters();
  }
  finish(taken);
  return released > 0 || !taken.empty() || others_released;
}

void PendingFrees::drop(const ContextRef &context) noexcept {
  std::list<Pending> gone;
  {
    Guard guard(mutex_);
    gone = take_out(pending_, [&](const Pending &one) { return one.context == context; });
  }
  finish(gone);
}

}  // namespace ration::policy
