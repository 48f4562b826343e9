// Notes what a thread holds across driver calls (gates, pins, counts). The program may leave such a call by longjmp out
// of a signal handler or a callback. Then no destructor of Ration runs, so what was held must be released later, from
// these notes.
// Layer: base. Threads: each thread notes and releases its own; the notes are in its state, never on its stack.
#pragma once

#include <atomic>

#include "core_abi.h"

namespace ration::held {

using Release = void (*)(void *) noexcept;

// Set when the core starts. If unset (in tools and tests), nothing is noted, and every holder releases what it holds.
inline constinit std::atomic<RationThread *(*)()> thread_state{nullptr};
inline RationThread *thread() noexcept {
  RationThread *(*const state)() = thread_state.load(std::memory_order_relaxed);
  return state != nullptr ? state() : nullptr;
}

// To be called after `what` was taken.
void note(Release release, void *what) noexcept;
// To be called before `what` is released. Returns false if it was already released because the thread seemed to have
// left the call.
[[nodiscard]] bool forget(Release release, void *what) noexcept;

// The same for callers that have the thread's state. If there is no room for a note, only the holder can release
// `what`, which stays held forever if the call is left.
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

// Releases, latest first, everything that is still held by calls that the thread has left. REQUIRES: the thread is in
// no other call.
void release_left() noexcept;

}  // namespace ration::held
