// What a hook of work does before the driver's call, and after it. Nothing is admitted or changed, so there is no
// boundary.
// Layer: hooks. Threads: any; a cancellation inside the driver's call unwinds through here.
// Design: design/quarantine.md#fences-before-work
#pragma once

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "policy/calls/device_reach.h"

namespace ration::hooks {

// Of work that uses no memory of another device's, as far as is known.
inline constexpr auto kNoMemory = [] { return policy::DeviceReach::Work{}; };

[[gnu::noinline]] inline void seal_frees(policy::DeviceReach &reach) noexcept {
  if (const Inside inside; !inside.nested()) {
    const CancellationOff uncancelled(inside.thread());
    reach.seal_frees();
  }
}

// Work that may reach memory of another device's.
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

// Apart, so that what most calls run through needs no room on the stack.
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

// Whether what a call uses is marked. A nested call is the driver's own, and waits for nothing here.
[[gnu::noinline]] inline bool is_marked(policy::DeviceReach &reach, const policy::DeviceReach::Work &work) noexcept {
  const Inside inside;
  return !inside.nested() && reach.is_marked(work);
}

// Of a synchronous call.
template <class Slot, class... Arguments>
[[gnu::noinline]] CUresult carefully_to_its_end(policy::DeviceReach &reach, const policy::DeviceReach::Work &work,
                                                const Slot &slot, Arguments... arguments) {
  const bool waits = reach.has_marked_blocks() && is_marked(reach, work);
  const CUresult result = carefully(reach, work, slot, arguments...);
  return waits && result == CUDA_SUCCESS ? policy::DeviceReach::wait(work) : result;
}

// `describe` answers what the work is; most calls need not know.
template <class Describe, class Slot, class... Arguments>
[[gnu::always_inline]] inline CUresult before(const Describe &describe, const Slot &slot, Arguments... arguments) {
  if (!slot.present()) {
    return kAbsent;
  }
  if (runtime::Runtime::existing() != nullptr) {  // else there is no block that could be reused
    policy::DeviceReach &reach = *runtime::family<policy::DeviceReach>;
    if (reach.is_needed() || reach.may_have_unsealed_frees()) {
      return carefully(reach, describe(), slot, arguments...);
    }
  }
  return slot(arguments...);
}

// The same for a synchronous call. The work's stream is the default one that it runs in.
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
