// What a thread holds across driver calls. The program may leave such a call without returning from it: by longjmp out
// of a signal handler or of a callback. No destructor of ours runs then, so what was held is noted here.
// Layer: base. Threads: each notes and releases its own; the notes are in the thread's state, never on its stack.
#pragma once

#include <atomic>

#include "core_abi.h"

namespace ration::held {

using Release = void (*)(void *) noexcept;

// Set by the core's start. Without it (tools, tests) nothing is noted, and all that is held is released by its holder.
inline constinit std::atomic<RationThread *(*)()> thread_state{nullptr};

// After it was taken.
void note(Release release, void *what) noexcept;
// False: it was released already, because the thread had left the call; the holder came back after all.
[[nodiscard]] bool forget(Release release, void *what) noexcept;

// Releases what the calls that the thread left hold still, the latest first. REQUIRES: the thread is in no other call.
void release_left() noexcept;

}  // namespace ration::held
