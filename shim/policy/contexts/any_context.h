// Questions to the driver that need a context of a device, whichever it is.
// Layer: policy/contexts. Threads: any; no lock is held.
#pragma once

#include "base/function_ref.h"
#include "policy/contexts/contexts.h"

namespace ration::policy {

// Calls `ask` in the current context, where that is one of the device, or in any other live one. False: there is none.
// Throws bad_alloc.
bool ask_in_context_of(Contexts &contexts, int device, FunctionRef<void()> ask);

}  // namespace ration::policy
