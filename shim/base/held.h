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
inline RationThread *thread() noexcept {
  RationThread *(*const state)() = thread_state.load(std::memory_order_relaxed);
  return state != nullptr ? state() : nullptr;
}

// After it was taken.
void note(Release release, void *what) noexcept;
// False: it was released already, because the thread had left the call; the holder came back after all.
[[nodiscard]] bool forget(Release release, void *what) noexcept;

// The same for who has the thread's state at hand. What finds no place is its holder's to release, and stays held where
// the call is left.
inline void note(RationThread &thread, Release release, void *what) noexcept {
  if (thread.held_count == sizeof(thread.held) / sizeof(thread.held[0])) {
    ++thread.held_unnoted;
    return;
  }
  thread.held[thread.held_count++] = {release, what};
}
[[nodiscard]] bool forget_among(RationThread &thread, Release release, void *what) noexcept;
[[nodiscard]] inline bool forget(RationThread &thread, Release release, void *what) noexcept {
  if (thread.held_count > 0 && thread.held[thread.held_count - 1].release == release &&
      thread.held[thread.held_count - 1].what == what) {
    --thread.held_count;
    return true;
  }
  return forget_among(thread, release, what);
}

// Releases what the calls that the thread left hold still, the latest first. REQUIRES: the thread is in no other call.
void release_left() noexcept;

}  // namespace ration::held
