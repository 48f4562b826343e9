// What the program has freed goes back to the driver's pools: the half of AsyncPools behind a free. Layer: policy.
#include <algorithm>

#include "base/wait.h"

#include "base/clock.h"
#include "policy/driver_pools/async_pools.h"

namespace ration::policy {
namespace {

using driver::real;

// An epoch for each of so many bytes costs the driver calls of one.
constexpr std::uint64_t kLeastDueBytes = 64U << 20U;

}  // namespace

// Out of the books first: behind the driver's call the address may be somebody else's.
CUresult AsyncPools::free_through(const ContextRef &context, Home &home, const DeferredBlock &block, bool settled) {
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  const CurrentFor current(context->handle);
  if (!current) {
    return current.error();
  }
  home.frees.given_back(block);
  if (real.cuMemFreeAsync(block.address, stream) == CUDA_SUCCESS && settled) {
    real.cuStreamSynchronize(stream);  // the pool may count on it
  }
  home.frees.out_of_hands();
  return CUDA_SUCCESS;
}

bool AsyncPools::give_back(Home &home, std::list<DeferredBlock> &clean, bool settled) noexcept {
  const RelaxedCapture relaxed;
  std::list<DeferredBlock> kept;
  bool any = false;
  while (!clean.empty()) {
    const DeferredBlock &block = clean.front();
    CUresult result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const bool is_last = std::next(clean.begin()) == clean.end();
    try {
      if (const Pin pin(*block.context); pin) {
        result = free_through(block.context, home, block, settled && is_last);
      } else {
        for (const ContextRef &other : contexts_.live()) {
          const Pin other_pin(*other);
          if (other_pin && result != CUDA_SUCCESS) {
            result = free_through(other, home, block, settled && is_last);
          }
        }
      }
    } catch (...) {  // no memory of the host to list them
    }
    any |= result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
      clean.pop_front();
    } else {
      kept.splice(kept.end(), clean, clean.begin());
    }
  }
  home.frees.keep(kept);
  return any;
}

void AsyncPools::record_wait(const char *api, int device, const DeferredFrees::Looked &looked,
                             const std::list<DeferredBlock> &clean, std::uint64_t start_ns) {
  std::uint64_t bytes = 0;
  for (const DeferredBlock &block : clean) {
    bytes += block.bytes;
  }
  journal_.record(events::Wait{device, api, fences_.by_events() ? "event" : "synchronize", clean.size(), bytes,
                               now_ns() - start_ns, looked.error});
}

void AsyncPools::collect(int device) noexcept {
  if (Home *home = known(device)) {
    std::list<DeferredBlock> clean;
    home->frees.collect(clean, false);
    give_back(*home, clean, true);
  }
}

void AsyncPools::settle(int device) noexcept {
  const Home *home = known(device);
  if (home != nullptr && home->frees.is_due(std::max(kLeastDueBytes, ledger_.account(device).charged() / 8))) {
    collect(device);
  }
}

std::uint64_t AsyncPools::returned(int device) const {
  const Home *home = known(device);
  return home == nullptr ? 0 : home->frees.returned();
}

bool AsyncPools::reclaim(const char *api, int device, std::uint64_t seen) noexcept {
  Home *home = known(device);
  if (home == nullptr) {
    return false;
  }
  DeferredFrees &frees = home->frees;
  for (Waiter waiter;; waiter.pause()) {
    if (frees.returned() != seen) {
      return true;
    }
    const std::uint64_t start = now_ns();
    std::list<DeferredBlock> clean;
    const DeferredFrees::Looked looked = frees.wait(clean);
    if (looked.waited) {
      record_wait(api, device, looked, clean, start);
    }
    if (give_back(*home, clean, true)) {
      return true;
    }
    const bool may_change = looked.ending || frees.in_hands() > 0;
    if (looked.error != CUDA_SUCCESS || looked.capturing || !may_change) {
      return frees.returned() != seen;
    }
  }
}

CUresult AsyncPools::drain(const char *api, int device) noexcept {
  Home *home = known(device);
  if (home == nullptr) {
    return CUDA_SUCCESS;
  }
  const std::uint64_t start = now_ns();
  std::list<DeferredBlock> clean;
  const DeferredFrees::Looked looked = home->frees.drain(clean);
  if (looked.waited) {
    record_wait(api, device, looked, clean, start);
  }
  give_back(*home, clean, true);
  return looked.error;
}

}  // namespace ration::policy
