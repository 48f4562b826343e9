#include "base/held.h"

namespace ration::held {

void note(Release release, void *what) noexcept {
  if (RationThread *const state = thread()) {
    note(*state, release, what);
  }
}

bool forget(Release release, void *what) noexcept {
  RationThread *const state = thread();
  return state == nullptr || forget(*state, release, what);
}

bool forget_among(RationThread &thread, Release release, void *what) noexcept {
  for (unsigned place = thread.held_count; place-- > 0;) {
    if (thread.held[place].release == release && thread.held[place].what == what) {
      for (--thread.held_count; place < thread.held_count; ++place) {
        thread.held[place] = thread.held[place + 1];
      }
      return true;
    }
  }
  if (thread.held_unnoted == 0) {
    return false;
  }
  --thread.held_unnoted;
  return true;
}

void release_left() noexcept {
  RationThread *const state = thread();
  while (state != nullptr && state->held_count > 0) {
    const RationHeld latest = state->held[--state->held_count];
    latest.release(latest.what);
  }
}

}  // namespace ration::held
