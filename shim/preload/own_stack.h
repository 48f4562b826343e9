// Layer: preload. Threads: any.
#pragma once

namespace ration::preload {

// Calls `function(argument)` on a separate stack with room for all that Ration does at first use. If there is no memory
// for such a stack, uses the current one.
void on_own_stack(void (*function)(void *), void *argument);

}  // namespace ration::preload
