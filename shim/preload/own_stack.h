// Layer: preload. Threads: any.
#pragma once

namespace ration::preload {

// Calls `function(argument)` on a separate stack with room for all that Ration does at first use, or on the current
// stack if there is no memory for one.
void on_own_stack(void (*function)(void *), void *argument);

}  // namespace ration::preload
