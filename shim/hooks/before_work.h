// What a hook of work does before the driver's call. Nothing is admitted or changed, so there is no boundary.
// Layer: hooks. Threads: any.
#pragma once

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/device_reach.h"

namespace ration::hooks {

template <class Slot, class... Arguments>
CUresult before(const policy::DeviceReach::Work &work, const Slot &slot, Arguments... arguments) noexcept {
  if (!slot.present()) {
    return kAbsent;
  }
  if (runtime::Runtime::existing() != nullptr) {  // else there is no block that could be reused
    policy::DeviceReach &reach = *runtime::family<policy::DeviceReach>;
    reach.note(work);
    if (reach.has_unsealed_frees()) {
      if (const Inside inside; !inside.nested()) {
        reach.seal_frees();
      }
    }
  }
  return slot(arguments...);
}

}  // namespace ration::hooks
