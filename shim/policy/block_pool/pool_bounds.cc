#include "policy/block_pool/pool_bounds.h"

#include <algorithm>
#include <cstddef>

#include "base/saturating.h"
#include "policy/contexts/any_context.h"
#include "pool/unit.h"

namespace ration::policy {
namespace {

// A pool that grows on demand leaves at most this in quarantine to save driver calls.
constexpr std::uint64_t kMostSlackOnDemand = 64U << 20U;
// No context is assumed to be larger: processes without Ration may hold what looks like one.
constexpr std::uint64_t kMostOfContext = std::uint64_t{640} << 20;

}  // namespace

std::uint64_t PoolBounds::most_bytes() const {
  const std::uint64_t total = devices_.total_on(device_);
  const std::uint64_t limit = account_.limit();
  return total == 0 ? limit : std::min(limit, total);
}

std::uint64_t PoolBounds::slack_bytes() const {
  const std::uint64_t slack = most_bytes() / 8;
  return plan.bytes > 0 ? slack : std::min(slack, kMostSlackOnDemand);
}

bool PoolBounds::has_rest() const {
  const std::uint64_t limit = account_.limit();
  return limit != UINT64_MAX && account_.charged() <= limit && limit - account_.charged() >= pool::kUnitBytes;
}

std::uint64_t PoolBounds::rest_of_limit() const {
  return has_rest() && account_.group_available() == UINT64_MAX ? account_.available() : 0;
}

// The memory of a context is estimated as what is used on the device and charged to no process, divided among this
// process's contexts and the other processes.
std::uint64_t PoolBounds::headroom(const Preallocation &planned, std::uint64_t free_bytes) const {
  const std::uint64_t total = devices_.total_on(device_);
  if (!planned.leaves_context || total <= free_bytes) {
    return planned.headroom;
  }
  const std::uint64_t held = account_.charged() + account_.held_by_others();
  const std::uint64_t unknown = minus_or_zero(total - free_bytes, held);
  const std::vector<ContextRef> live = contexts_.live();
  const auto own =
      std::count_if(live.begin(), live.end(), [&](const ContextRef &context) { return context->device == device_; });
  const std::uint64_t contexts = account_.neighbours() + static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(own, 1));
  return std::max(planned.headroom, std::min(unknown / contexts, kMostOfContext));
}

std::uint64_t PoolBounds::free_beyond_headroom() const {
  const std::uint64_t free_bytes = device_free(contexts_, device_).value_or(UINT64_MAX);
  return minus_or_zero(free_bytes, headroom(plan, free_bytes));
}

}  // namespace ration::policy
