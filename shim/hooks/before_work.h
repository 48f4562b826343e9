// The steps that a hook takes before and after a driver call that submits work. Such a hook neither admits nor changes
// anything, so it does not cross the boundary (boundary.h).
// Layer: hooks. Threads: any; a thread cancelled inside the driver's call unwinds through here.
// Design: design/quarantine.md#fences-before-work
#pragma once

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/device_reach.h"

namespace ration::hooks {

// Describes work that uses no memory of another device, as far as Ration knows.
inline constexpr auto kNoMemory = [] { return policy::DeviceReach::Work{}; };

[[gnu::noinline]] inline void seal_frees(policy::DeviceReach &reach) noexcept {
  if (const Inside inside; !inside.nested()) {
    const CancellationOff uncancelled(inside.thread());
    reach.seal_frees();
  }
}

// Makes the driver call for work that may reach another device's memory.
template <class Slot, class... Arguments>
[[gnu::noinline]] CUresult noted(policy::DeviceReach &reach, const policy::DeviceReach::Work &work,
                                 const policy::DeviceReach::Used &used, const Slot &slot, Arguments... arguments) {
  policy::DeviceReach::Noted noted(reach, work, used);
  const CUresult result = slot(arguments...);
  if (noted.leave(result)) {
    if (const Inside inside; !inside.nested()) {
      const CancellationOff uncancelled(inside.thread());
      noted.fence();
    }
  }
  return result;
}

// Not inlined, because most calls do not get here and should not need stack space for it.
template <class Slot, class... Arguments>
[[gnu::noinline]] CUresult carefully(policy::DeviceReach &reach, const policy::DeviceReach::Work &work,
                                     const Slot &slot, Arguments... arguments) {
  if (reach.may_have_unsealed_frees()) {
    seal_frees(reach);
  }
  const policy::DeviceReach::Used used = reach.is_needed() ? reach.used_abroad(work) : policy::DeviceReach::Used{};
  if (!used.any()) {
    return slot(arguments...);
  }
  return noted(reach, work, used, slot, arguments...);
}

// True if the call uses memory whose SYNC_MEMOPS attribute only Ration keeps, not the driver. False for a nested call,
// which is the driver's own and must not wait here.
[[gnu::noinline]] inline bool is_marked(policy::DeviceReach &reach, const policy::DeviceReach::Work &work) noexcept {
  const Inside inside;
  return !inside.nested() && reach.is_marked(work);
}

// Like carefully(), for a synchronous call. If is_marked(), also waits for the work to end.
template <class Slot, class... Arguments>
[[gnu::noinline]] CUresult carefully_to_its_end(policy::DeviceReach &reach, const policy::DeviceReach::Work &work,
                                                const Slot &slot, Arguments... arguments) {
  const bool waits = reach.has_marked_blocks() && is_marked(reach, work);
  const CUresult result = carefully(reach, work, slot, arguments...);
  return waits && result == CUDA_SUCCESS ? policy::DeviceReach::wait(work) : result;
}

// Calls the driver's function, `slot(arguments...)`, for a hook that submits work. `describe` returns what the work
// uses; it is called only if that can matter, which is rare.
template <class Describe, class Slot, class... Arguments>
[[gnu::always_inline]] inline CUresult before(const Describe &describe, const Slot &slot, Arguments... arguments) {
  if (!slot.present()) {
    return kAbsent;
  }
  if (runtime::Runtime::existing() != nullptr) {  // without a runtime there is no block that could be reused
    policy::DeviceReach &reach = *runtime::family<policy::DeviceReach>;
    if (reach.is_needed() || reach.may_have_unsealed_frees()) {
      return carefully(reach, describe(), slot, arguments...);
    }
  }
  return slot(arguments...);
}

// Like before(), for a synchronous call. `describe` names the default stream that the work runs in.
template <class Describe, class Slot, class... Arguments>
[[gnu::always_inline]] inline CUresult synchronous(const Describe &describe, const Slot &slot, Arguments... arguments) {
  if (!slot.present()) {
    return kAbsent;
  }
  if (runtime::Runtime::existing() != nullptr) {
    policy::DeviceReach &reach = *runtime::family<policy::DeviceReach>;
    if (reach.is_needed() || reach.may_have_unsealed_frees() || reach.has_marked_blocks()) {
      return carefully_to_its_end(reach, describe(), slot, arguments...);
    }
  }
  return slot(arguments...);
}

}  // namespace ration::hooks
