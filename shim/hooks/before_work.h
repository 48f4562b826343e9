// What a hook of work does before the driver's call. Nothing is admitted or changed, so there is no boundary.
// Layer: hooks. Threads: any.
#pragma once

#include <optional>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/device_reach.h"

namespace ration::hooks {

template <class Slot, class... Arguments>
CUresult before(const policy::DeviceReach::Work &work, const Slot &slot, Arguments... arguments) noexcept {
  if (!slot.present()) {
    return kAbsent;
  }
  std::optional<policy::DeviceReach::Noted> noted;
  if (runtime::Runtime::existing() != nullptr) {  // else there is no block that could be reused
    policy::DeviceReach &reach = *runtime::family<policy::DeviceReach>;
    if (reach.is_needed()) {
      noted.emplace(reach, work);
    }
    if (reach.has_unsealed_frees()) {
      if (const Inside inside; !inside.nested()) {
        reach.seal_frees();
      }
    }
  }
  const CUresult result = slot(arguments...);
  if (noted && noted->leave(result)) {
    if (const Inside inside; !inside.nested()) {
      noted->fence();
    }
  }
  return result;
}

}  // namespace ration::hooks
