#include "policy/block_pool/returning.h"

#include <algorithm>

#include "base/clock.h"
#include "base/saturating.h"
#include "base/wait.h"
#include "policy/contexts/any_context.h"

namespace ration::policy {

std::uint64_t Returning::free_bytes(int device) {
  DevicePool *pool = pools_.known(device);
  return pool == nullptr ? 0 : pool->quarantine.bytes() + pool->clean_bytes();
}

std::uint64_t Returning::returnable(int device, const ContextPool *asking) {
  std::uint64_t bytes = 0;
  if (const DevicePool *pool = pools_.known(device)) {
    for (const ContextRef &context : pool->contexts()) {
      ContextPool &each = *existing_pool(*context);
      bytes += each.backing->returnable(each, &each == asking);
    }
  }
  return bytes;
}

void Returning::clean(int device) noexcept {
  if (DevicePool *pool = pools_.known(device)) {
    sharing_.reclaim_unshared();
    pool->quarantine.collect(Quarantine::Sealing::always);
  }
}

bool Returning::is_worth_waiting(const Room::Need &need, DevicePool &pool, Room::Patience patience) {
  if (patience == Room::Patience::briefly) {
    const std::uint64_t held = returnable(need.device, need.asking);
    const std::optional<std::uint64_t> rest = device_free(parts_.contexts, need.device);
    return held > 0 && (!rest || *rest >= need.bytes || held >= need.bytes - *rest);
  }
  const std::vector<ContextRef> contexts = pool.contexts();
  return std::any_of(contexts.begin(), contexts.end(),
                     [](const ContextRef &context) { return existing_pool(*context)->blocks.has_wholly_free_slab(); });
}

// Waits until the device is idle and what was freed is clean, so that its slabs are wholly free. Bounded in time.
bool Returning::becomes_idle(const char *api, DevicePool &pool) {
  FenceTracker &fences = parts_.fences;
  const std::uint64_t start = now_ns();
  Quarantine::Cleaned all;
  for (Backoff backoff;; backoff.sleep()) {
    const bool over = fences.captures().is_run_here() || !fences.by_events() || now_ns() - start > kIdlePatienceNs;
    const bool idle = fences.is_idle(pool.device);
    if (over || (idle && pool.quarantine.blocks() == 0)) {
      if (all.waited) {
        pool.record_wait(api, "poll", all, start);
      }
      return idle;
    }
    const Quarantine::Cleaned cleaned = pool.quarantine.collect(Quarantine::Sealing::always);
    all.add(cleaned);
    all.error = cleaned.error;
    all.waited = true;
  }
}

Returned Returning::give_back_free(const Room::Need &need, DevicePool &pool, bool idle) {
  Returned all;
  ledger::Transit transit(pool.account.transits());
  for (const ContextRef &context : pool.contexts()) {
    ContextPool &each = *existing_pool(*context);
    // The end of a context goes through two lists, and a piece that is in transit or was refused is in neither. So the
    // end must wait.
    const ContextPool::InFlight in_flight(each);
    Room::Need left = need;
    left.bytes = need.bytes == 0 ? UINT64_MAX : minus_or_zero(need.bytes, all.bytes);
    const Returned returned = each.backing->give_back_free(left, context, idle);
    all.slabs += returned.slabs;
    all.granules += returned.granules;
    all.bytes += returned.bytes;
  }
  if (all.bytes > 0) {
    transit.hold();
    parts_.journal.record(events::Trim{need.device, need.api, all.slabs, all.bytes, all.granules});
  }
  return all;
}

bool Returning::give_back(const Room::Need &need, Room::Patience patience) noexcept try {
  DevicePool *pool = pools_.known(need.device);
  if (pool == nullptr) {
    return false;
  }
  clean(need.device);
  // Clean granules go back at once. Retired ones may have to wait for the device, as slabs do.
  const bool gave = give_back_free(need, *pool, false).bytes > 0;
  const bool enough = patience == Room::Patience::none || pool->account.available() >= need.bytes;
  if ((gave && enough) || !is_worth_waiting(need, *pool, patience)) {
    return gave;
  }
  if (!parts_.fences.by_events()) {
    if (patience == Room::Patience::briefly) {
      pool->quarantine.drain();  // this driver does not say how far the device's work is
    }
  } else if (!(patience == Room::Patience::none ? parts_.fences.is_idle(need.device) : becomes_idle(need.api, *pool))) {
    return gave;
  }
  return give_back_free(need, *pool, true).bytes > 0 || gave;
} catch (...) {  // no memory of the host to list the pools
  return false;
}

// A device without a wholly free piece has nothing to give. It is not searched again before more of it is free.
void Returning::keep_to_threshold(const char *api, int device) noexcept try {
  DevicePool *pool = pools_.known(device);
  if (pool == nullptr) {
    return;
  }
  if (pool->account.is_over_order()) {
    give_back({api, device, pool->account.excess()}, Room::Patience::none);
  }
  const std::uint64_t threshold = pool->bounds.plan.release_threshold;
  if (threshold == UINT64_MAX) {
    return;
  }
  std::atomic<std::uint64_t> &kept_bytes = kept_bytes_[device];
  const std::uint64_t free_now = pool->clean_bytes();
  if (free_now <= threshold) {
    kept_bytes.store(0, std::memory_order_relaxed);
  } else if (free_now > kept_bytes.load(std::memory_order_relaxed)) {
    const std::uint64_t returned = give_back_free({api, device, free_now - threshold}, *pool, false).bytes;
    kept_bytes.store(minus_or_zero(free_now, returned), std::memory_order_relaxed);
  }
} catch (...) {  // no memory of the host to list the pools
}

void Returning::clean_to_threshold(const char *api, int device) noexcept {
  DevicePool *pool = pools_.known(device);
  if (pool != nullptr && pool->bounds.plan.release_threshold != UINT64_MAX) {
    pool->quarantine.collect(Quarantine::Sealing::always);
    keep_to_threshold(api, device);
  }
}

}  // namespace ration::policy
