// Queries to the driver that need some context of a device.
// Layer: policy/contexts. Threads: any; no lock is held.
#pragma once

#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

// Calls `ask` in the current context if that belongs to the device, or else in any live context of the device. Returns
// false if there is none. Throws bad_alloc.
bool ask_in_context_of(Contexts &contexts, int device, FunctionRef<void()> ask);

// Free bytes of the device as the driver reports them, whichever context is current. nullopt if the device has no
// context or the driver does not report the bytes.
std::optional<std::uint64_t> device_free(Contexts &contexts, int device) noexcept;

}  // namespace ration::policy
