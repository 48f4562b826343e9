#include "policy/block_pool/movement.h"

#include <algorithm>

#include "base/saturating.h"
#include "policy/contexts/any_context.h"

namespace ration::policy {

std::uint64_t untaken_bytes(Contexts &contexts, const DevicePool &device) {
  return std::min(device.account.available(), device_free(contexts, device.device).value_or(UINT64_MAX));
}

std::uint64_t Movement::finished_calls() const {
  const events::DeviceTally &tally = parts_.journal.tally().devices[call_.device.device];
  return tally.allocs.load(std::memory_order_relaxed) + tally.frees.load(std::memory_order_relaxed);
}

bool Movement::has_other_calls() const {
  int calls = 0;
  for (const ContextRef &context : call_.device.contexts()) {
    calls += existing_pool(*context)->in_flight.load();
  }
  return calls > 1;
}

bool Movement::may_have_hidden_memory() const noexcept try {
  const auto enough_is_unused = [&] {
    const std::uint64_t untaken = untaken_bytes(parts_.contexts, call_.device);
    return plus_or_most(untaken, call_.device.unused_bytes()) >= call_.request.upper_bound;
  };
  return call_.pool.backing->gives_parts() && (finished_calls() != finished_ || has_other_calls()) &&
         enough_is_unused();
} catch (...) {  // no memory of the host
  return false;
}

}  // namespace ration::policy
