// Questions to the driver that need a context of a device, whichever it is.
// Layer: policy/contexts. Threads: any; no lock is held.
#pragma once

#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

// Calls `ask` in the current context, where that is one of the device, or in any other live one. False: there is none.
// Throws bad_alloc.
bool ask_in_context_of(Contexts &contexts, int device, FunctionRef<void()> ask);

// Free bytes of the device as the driver reports them, whatever is current. Nothing: not known, as there is no context
// of it, or the driver does not say.
std::optional<std::uint64_t> device_free(Contexts &contexts, int device) noexcept;

}  // namespace ration::policy
