#include "policy/block_pool/device_pool.h"

#include <algorithm>

#include "base/clock.h"
#include "base/wait.h"

namespace ration::policy {

DevicePool::DevicePool(const PoolParts &parts, int ordinal)
    : device(ordinal),
      account(parts.ledger.account(ordinal)),
      bounds(parts.devices, parts.ledger, parts.contexts, ordinal),
      quarantine(parts.fences, parts.context_pools, ordinal),
      turn(bounds.plan.bytes > 0),
      parts_(parts) {}

std::vector<ContextRef> DevicePool::contexts() const {
  std::vector<ContextRef> contexts = parts_.contexts.live();
  std::erase_if(contexts, [this](const ContextRef &context) {
    return context->device != device || existing_pool(*context) == nullptr;
  });
  return contexts;
}

std::uint64_t DevicePool::clean_bytes() const {
  std::uint64_t bytes = 0;
  for (const ContextRef &context : contexts()) {
    bytes += existing_pool(*context)->blocks.statistics().free_bytes;
  }
  return bytes;
}

std::uint64_t DevicePool::unused_bytes() const {
  std::uint64_t bytes = 0;
  for (const ContextRef &context : contexts()) {
    const pool::Statistics held = existing_pool(*context)->blocks.statistics();
    bytes += held.slab_bytes - held.used_bytes;
  }
  return bytes;
}

bool DevicePool::holds_elsewhere(const Context *caller, std::uint64_t bytes) const {
  std::uint64_t elsewhere = 0;
  for (const ContextRef &context : contexts()) {
    if (context.get() != caller) {
      const pool::Statistics held = existing_pool(*context)->blocks.statistics();
      elsewhere += held.free_bytes + held.retired_bytes;
    }
  }
  return elsewhere > 0 && bytes <= account.available() + elsewhere;
}

TakeOutcome DevicePool::obtain(std::uint64_t bytes, ledger::Effort effort, ledger::Transit &transit, CUresult &error,
                               FunctionRef<CUresult()> call) {
  const ledger::Change change(account.changes());
  const ledger::ReserveOutcome reserved = account.reserve(bytes, effort);
  if (reserved != ledger::ReserveOutcome::granted) {
    return reserved == ledger::ReserveOutcome::over_limit ? TakeOutcome::over_limit : TakeOutcome::over_group_limit;
  }
  transit.hold();
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    return TakeOutcome::taken;
  }
  account.release(bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    full_.store(true, std::memory_order_relaxed);
    return TakeOutcome::device_full;
  }
  error = result;
  return TakeOutcome::failed;
}

void DevicePool::note_taken(std::uint64_t bytes) {
  full_.store(false, std::memory_order_relaxed);
  held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  note_size();
}

void DevicePool::note_gone(std::uint64_t bytes) noexcept {
  full_.store(false, std::memory_order_relaxed);
  held_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  note_size();
}

void DevicePool::note_size() {
  const bool takes_from_others = account.limit() == UINT64_MAX || account.group_available() != UINT64_MAX;
  quarantine.set_sizes(held_bytes(), bounds.slack_bytes(), bounds.most_bytes(), takes_from_others);
}

bool DevicePool::can_grow(std::uint64_t block_bytes) const {
  return !is_full() && account.available() >= pool::Pool::slab_bytes_for(block_bytes);
}

// If so, a free waits: otherwise an allocation would have to wait for that memory sooner or later, perhaps under a lock
// that the device's work needs.
bool DevicePool::has_much_freed() {
  return quarantine.freed_bytes() > bounds.most_bytes() / 2 || quarantine.exceeds_cap();
}

void DevicePool::wait_after_free(const char *api, const ContextRef &owner, std::uint64_t bytes) noexcept {
  const FenceTracker &fences = parts_.fences;
  if (existing_pool(*owner)->blocks.may_serve(bytes) || can_grow(bytes)) {
    if (!has_much_freed() || (!fences.by_events() && parts_.fences.captures().running())) {
      return;
    }
    quarantine.collect(Quarantine::Sealing::always);
    if (!has_much_freed()) {
      return;
    }
  }
  const std::uint64_t start = now_ns();
  const Quarantine::Cleaned cleaned = quarantine.wait_for_context(*owner);
  if (cleaned.waited) {
    record_wait(api, fences.by_events() ? "event" : "synchronize", cleaned, start);
  }
}

void DevicePool::drain_briefly(const char *api, std::uint64_t most_ns) {
  if (quarantine.blocks() == 0 || !parts_.fences.by_events()) {
    return;
  }
  const std::uint64_t start = now_ns();
  Quarantine::Cleaned all;
  for (Backoff backoff;;) {
    const Quarantine::Cleaned cleaned = quarantine.collect(Quarantine::Sealing::always);
    all.add(cleaned);
    all.error = cleaned.error;
    if (quarantine.blocks() == 0 || cleaned.error != CUDA_SUCCESS || cleaned.capturing || now_ns() - start > most_ns) {
      break;
    }
    all.waited = true;
    backoff.sleep();
  }
  if (all.waited) {
    record_wait(api, "poll", all, start);
  }
}

void DevicePool::record_wait(const char *api, const char *how, const Quarantine::Cleaned &cleaned,
                             std::uint64_t start_ns) const {
  parts_.journal.record(
      events::Wait{device, api, how, cleaned.blocks, cleaned.bytes, now_ns() - start_ns, cleaned.error});
}

DevicePools::~DevicePools() {
  for (std::atomic<DevicePool *> &pool : devices_) {
    delete pool.load(std::memory_order_acquire);
  }
}

DevicePool &DevicePools::on(int device) {
  DevicePool *pool = known(device);
  if (pool == nullptr) {
    auto made = std::make_unique<DevicePool>(parts_, device);
    if (devices_[device].compare_exchange_strong(pool, made.get(), std::memory_order_acq_rel)) {
      pool = made.release();
      for (int end = end_.load(); end <= device && !end_.compare_exchange_weak(end, device + 1);) {
      }
    }
  }
  return *pool;
}

bool DevicePools::has_unsealed_frees() noexcept {
  bool any = false;
  each([&](DevicePool &pool) { any = any || pool.quarantine.has_unsealed(); });
  return any;
}

void DevicePools::seal_frees() noexcept {
  if (parts_.fences.captures().running()) {
    return;
  }
  each([](DevicePool &pool) {
    if (pool.quarantine.has_unsealed()) {
      pool.quarantine.collect(Quarantine::Sealing::before_work);
    }
  });
}

// What was freed before the program's own synchronise must not wait for what the program submits after it.
std::uint64_t DevicePools::before_synchronise() noexcept {
  each([](DevicePool &pool) {
    pool.quarantine.collect(Quarantine::Sealing::always);
    pool.quarantine.seal_finely();
  });
  return parts_.fences.now();
}

}  // namespace ration::policy
