// Layer: preload. Threads: any.
#pragma once

namespace ration::preload {

// Calls it on a stack of its own, with room for all that Ration does at first use. Where no stack can be had: on this
// one.
void on_own_stack(void (*function)(void *), void *argument);

}  // namespace ration::preload
