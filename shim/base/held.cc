#include "base/held.h"

namespace ration::held {
namespace {

RationThread *this_state() noexcept {
  RationThread *(*const state)() = thread_state.load(std::memory_order_relaxed);
  return state != nullptr ? state() : nullptr;
}

}  // namespace

// What finds no place is its holder's to release, and stays held where the call is left.
void note(Release release, void *what) noexcept {
  RationThread *const thread = this_state();
  if (thread == nullptr) {
    return;
  }
  if (thread->held_count == sizeof(thread->held) / sizeof(thread->held[0])) {
    ++thread->held_unnoted;
    return;
  }
  thread->held[thread->held_count++] = {release, what};
}

bool forget(Release release, void *what) noexcept {
  RationThread *const thread = this_state();
  if (thread == nullptr) {
    return true;
  }
  for (unsigned place = thread->held_count; place-- > 0;) {
    if (thread->held[place].release == release && thread->held[place].what == what) {
      for (--thread->held_count; place < thread->held_count; ++place) {
        thread->held[place] = thread->held[place + 1];
      }
      return true;
    }
  }
  if (thread->held_unnoted == 0) {
    return false;
  }
  --thread->held_unnoted;
  return true;
}

void release_left() noexcept {
  RationThread *const thread = this_state();
  while (thread != nullptr && thread->held_count > 0) {
    const RationHeld latest = thread->held[--thread->held_count];
    latest.release(latest.what);
  }
}

}  // namespace ration::held
