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

// Out of the books first: after the driver's call another thread may have the address. They count as returned when the
// stream has passed them all: no other stream could have one before, and who looks for memory may be in another
// context.
bool AsyncPools::free_through(const ContextRef &context, DevicePool &device_pool,
                              DeferredFrees::Items &blocks) noexcept {
  CUresult error = CUDA_SUCCESS;
  const CUstream stream = stream_of(context, error);
  const CurrentFor current(context->handle);
  if (error != CUDA_SUCCESS || !current) {
    return false;
  }
  DeferredFrees::Items taken;
  DeferredFrees::Items refused;
  while (!blocks.empty()) {
    const DeferredBlock &block = DeferredBlock::of(blocks.front());
    DeferredFrees::Held held = device_pool.frees.begin_return(block);
    const bool done = real.cuMemFreeAsync(block.address, stream) == CUDA_SUCCESS;
    if (!done) {
      device_pool.frees.finish_return(block, std::move(held), false);
    }
    DeferredFrees::Items &into = done ? taken : refused;
    into.splice(into.end(), blocks, blocks.begin());
  }
  blocks.swap(refused);
  if (taken.empty()) {
    return false;
  }
  real.cuStreamSynchronize(stream);  // the pool counts them as free then
  for (const std::unique_ptr<Deferred> &block : taken) {
    device_pool.frees.finish_return(DeferredBlock::of(block), {}, true);
  }
  return true;
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
  using Block = std::unique_ptr<Deferred>;
  const auto context_of = [](const Block &block) -> const ContextRef & { return DeferredBlock::of(block).context; };
  clean.sort([&](const Block &one, const Block &other) { return context_of(one) < context_of(other); });
  while (!clean.empty()) {
    const ContextRef context = context_of(clean.front());  // each has its own stream
    const auto next =
        std::find_if(clean.begin(), clean.end(), [&](const Block &block) { return context_of(block) != context; });
    DeferredFrees::Items blocks;
    blocks.splice(blocks.end(), clean, clean.begin(), next);
    if (const Pin pin(*context); pin) {
      any |= free_through(context, device_pool, blocks);
    } else {
      any |= free_elsewhere(device_pool, blocks);
    }
    kept.splice(kept.end(), blocks);
  }
  clean.splice(clean.end(), kept);
  return any;
}

// Their context has ended.
bool AsyncPools::free_elsewhere(DevicePool &device_pool, DeferredFrees::Items &blocks) noexcept try {
  bool any = false;
  for (const ContextRef &other : contexts_.live()) {
    const Pin pin(*other);
    any |= pin && !blocks.empty() && free_through(other, device_pool, blocks);
  }
  return any;
} catch (...) {  // no memory of the host to list the others
  return false;
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

void AsyncPools::wait_for_context(const char *api, int device, const Context &context) noexcept {
  DevicePool &device_pool = *known(device);
  const std::uint64_t start = now_ns();
  DeferredFrees::Cleaned cleaned = device_pool.frees.wait_for_context(context);
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
