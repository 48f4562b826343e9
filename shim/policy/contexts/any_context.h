// Queries of the driver that need some context of a device.
// Layer: policy/contexts. Threads: any; no lock is held.
#pragma once

#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

// Calls `ask` in the current context, if it is one of the device, else in any live context of the device. False: the
// device has none. Throws bad_alloc.
bool ask_in_context_of(Contexts &contexts, int device, FunctionRef<void()> ask);

// Free bytes of the device as the driver reports them, whichever context is current. nullopt: the device has no
// context, or the driver does not report them.
std::optional<std::uint64_t> device_free(Contexts &contexts, int device) noexcept;

}  // namespace ration::policy
