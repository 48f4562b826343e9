// Who called: a CUDA runtime or the program itself. Best effort, for the log's `via`.
// Layer: hooks. Threads: any; lock-free caches of pure functions of the loaded objects.
// Design: design/interception.md#origin-of-a-call
#pragma once

#include "runtime/runtime.h"

namespace ration::hooks {

// `caller` lies in an object that asked for the driver as a runtime does: what it calls is a runtime's.
void note_runtime(const void *caller);
events::Via via_of(const void *caller);

}  // namespace ration::hooks
