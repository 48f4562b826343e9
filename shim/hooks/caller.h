// Finds out whether a CUDA runtime or the program itself made a call. Best effort, for the `via` field of the log.
// Layer: hooks. Threads: any; lock-free caches of facts about the loaded objects.
// Design: design/interception.md#origin-of-a-call
#pragma once

#include "runtime/runtime.h"

namespace ration::hooks {

// Notes that the object that contains `caller` looked up the driver's functions as a CUDA runtime does. From now on,
// calls from this object count as a runtime's.
void note_runtime(const void *caller);
events::Via via_of(const void *caller);

}  // namespace ration::hooks
