// What the program has freed goes back to the driver's pools: the part of AsyncPools that serves frees.
// Layer: policy/driver_pools.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/wait.h"
#include "policy/driver_pools/async_pools.h"

namespace ration::policy {
namespace {

using driver::real;

// An epoch for each of so many bytes costs the driver calls of one.
constexpr std::uint64_t kLeastDueBytes = 64U << 20U;
// A free has a fence of its own, before any later work, unless so many come that their fences would cost too much.
constexpr std::uint64_t kSealEveryNs = 200'000;

}  // namespace

// Out of the books first: after the driver's call another thread may have the address.
CUresult AsyncPools::free_through(const ContextRef &context, DevicePool &device_pool, const DeferredBlock &block,
                                  bool synchronised) {
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  const CurrentFor current(context->handle);
  if (!current) {
    return current.error();
  }
  DeferredFrees::Held held = device_pool.frees.begin_return(block);
  error = real.cuMemFreeAsync(block.address, stream);
  if (error == CUDA_SUCCESS && synchronised) {
    real.cuStreamSynchronize(stream);  // the pool counts it as free then
  }
  device_pool.frees.finish_return(block, std::move(held), error == CUDA_SUCCESS);
  return error;
}

bool AsyncPools::give_back(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept {
  if (clean.empty()) {
    return false;
  }
  if (serves_again(device_pool)) {
    return return_all(device_pool, clean);
  }
  return device_pool.frees.retain(clean) || return_all(device_pool, clean);
}

// Whether a block that goes back to the pool can be had again.
bool AsyncPools::serves_again(const DevicePool &device_pool) {
  const StreamPools::Pool &pool = *device_pool.pool;
  const bool may_grow = ledger_.account(pool.device).available() >= stream_pools_.upper_bound(pool, 1);
  return may_grow || stream_pools_.can_reach_cap(pool);
}

CUdeviceptr AsyncPools::take_retained(const StreamPools::PoolRef &pool, std::uint64_t bytes) noexcept {
  const CUdeviceptr address = known(pool->device)->frees.take_retained(bytes);
  if (address != 0) {
    stream_pools_.block_begun(*pool);
  }
  return address;
}

void AsyncPools::release_needless(int device) noexcept {
  DevicePool *device_pool = known(device);
  if (device_pool != nullptr && device_pool->frees.retained_bytes() > 0 && serves_again(*device_pool)) {
    release_retained(device);
  }
}

bool AsyncPools::release_retained(int device) noexcept {
  DevicePool *device_pool = known(device);
  if (device_pool == nullptr || device_pool->frees.retained_bytes() == 0) {
    return false;
  }
  DeferredFrees::Items all = device_pool->frees.release_retained();
  const bool any = return_some(*device_pool, all);
  if (!all.empty() && !device_pool->frees.retain(all)) {  // retained still: who waits for what is freed gains nothing
    device_pool->frees.keep(all);
  }
  return any;
}

bool AsyncPools::return_all(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept {
  const bool any = return_some(device_pool, clean);
  device_pool.frees.keep(clean);
  return any;
}

bool AsyncPools::return_some(DevicePool &device_pool, DeferredFrees::Items &clean) noexcept {
  const RelaxedCapture relaxed;
  DeferredFrees::Items kept;
  bool any = false;
  clean.sort([](const DeferredBlock &one, const DeferredBlock &other) { return one.context < other.context; });
  while (!clean.empty()) {
    const DeferredBlock &block = clean.front();
    CUresult result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const auto next = std::next(clean.begin());
    const bool is_last = next == clean.end() || next->context != block.context;  // each context has its own stream
    try {
      if (const Pin pin(*block.context); pin) {
        result = free_through(block.context, device_pool, block, is_last);
      } else {
        for (const ContextRef &other : contexts_.live()) {
          const Pin other_pin(*other);
          if (other_pin && result != CUDA_SUCCESS) {
            result = free_through(other, device_pool, block, is_last);
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
  clean.splice(clean.end(), kept);
  return any;
}

void AsyncPools::record_wait(const char *api, int device, const DeferredFrees::Cleaned &cleaned,
                             std::uint64_t start_ns) {
  if (cleaned.waited) {
    journal_.record(events::Wait{device, api, fences_.by_events() ? "event" : "synchronize", cleaned.blocks,
                                 cleaned.bytes, now_ns() - start_ns, cleaned.error});
  }
}

void AsyncPools::collect(int device) noexcept {
  if (DevicePool *device_pool = known(device)) {
    device_pool->collected_ns.store(now_ns(), std::memory_order_relaxed);
    DeferredFrees::Cleaned cleaned = device_pool->frees.collect(DeferredFrees::Sealing::always);
    give_back(*device_pool, cleaned.items);
  }
}

void AsyncPools::poll_if_due(int device) noexcept {
  DevicePool *device_pool = known(device);
  if (device_pool == nullptr || device_pool->frees.blocks() == 0) {
    return;
  }
  if (now_ns() - device_pool->collected_ns.load(std::memory_order_relaxed) > kSealEveryNs ||
      device_pool->frees.is_worth_collecting(std::max(kLeastDueBytes, ledger_.account(device).charged() / 8))) {
    collect(device);
  }
}

std::uint64_t AsyncPools::returned(int device) const {
  const DevicePool *device_pool = known(device);
  return device_pool == nullptr ? 0 : device_pool->frees.reclaimed();
}

bool AsyncPools::reclaim(const char *api, int device, std::uint64_t seen) noexcept {
  DevicePool *device_pool = known(device);
  if (device_pool == nullptr) {
    return false;
  }
  DeferredFrees &frees = device_pool->frees;
  const std::uint64_t begun = now_ns();
  for (Backoff backoff; frees.reclaimed() == seen;) {
    const std::uint64_t start = now_ns();
    DeferredFrees::Cleaned cleaned = frees.wait(seen);
    record_wait(api, device, cleaned, start);
    if (give_back(*device_pool, cleaned.items) || cleaned.others_cleaned) {
      continue;
    }
    const bool for_a_capture = cleaned.capturing && cleaned.error == CUDA_SUCCESS &&
                               fences_.captures().run_elsewhere_only() && now_ns() - begun < kCapturePatienceNs;
    if (!for_a_capture) {
      return frees.reclaimed() != seen;
    }
    backoff.sleep();
  }
  return true;
}

void AsyncPools::settle(const char *api, int device, const Context &context) noexcept {
  DevicePool &device_pool = *known(device);
  const std::uint64_t start = now_ns();
  DeferredFrees::Cleaned cleaned = device_pool.frees.settle(context);
  record_wait(api, device, cleaned, start);
  give_back(device_pool, cleaned.items);
}

bool AsyncPools::has_unsealed_frees() const {
  for (int device = 0; in_use_.load(std::memory_order_relaxed) && device < ledger::kMaxDevices; ++device) {
    if (const DevicePool *device_pool = known(device); device_pool != nullptr && device_pool->frees.has_unsealed()) {
      return true;
    }
  }
  return false;
}

void AsyncPools::seal_frees() noexcept {
  for (int device = 0; !fences_.captures().running() && device < ledger::kMaxDevices; ++device) {
    if (DevicePool *device_pool = known(device); device_pool != nullptr && device_pool->frees.has_unsealed()) {
      DeferredFrees::Cleaned cleaned = device_pool->frees.collect(DeferredFrees::Sealing::before_work);
      give_back(*device_pool, cleaned.items);
    }
  }
}

void AsyncPools::before_synchronise() noexcept {
  for (int device = 0; in_use_.load(std::memory_order_relaxed) && device < ledger::kMaxDevices; ++device) {
    if (DevicePool *device_pool = known(device); device_pool != nullptr && device_pool->frees.blocks() > 0) {
      collect(device);
      device_pool->frees.seal_finely();
    }
  }
}

CUresult AsyncPools::drain(const char *api, int device) noexcept {
  DevicePool *device_pool = known(device);
  if (device_pool == nullptr) {
    return CUDA_SUCCESS;
  }
  const std::uint64_t start = now_ns();
  DeferredFrees::Cleaned cleaned = device_pool->frees.drain();
  record_wait(api, device, cleaned, start);
  give_back(*device_pool, cleaned.items);
  return cleaned.error;
}

}  // namespace ration::policy
