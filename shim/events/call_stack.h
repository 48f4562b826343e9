// The return addresses of the calling thread, from the innermost call outwards.
// Layer: events (a leaf). Threads: concerns the calling thread only.
#pragma once

#include <array>
#include <cstdint>

namespace ration::events {

struct CallStack {
  static constexpr unsigned kDeepest = 128;  // outer calls are left out

  std::array<std::uintptr_t, kDeepest> code;
  // Where on the stack each address was found, so that a look there tells whether the thread is in the same calls
  // again.
  std::array<const std::uintptr_t *, kDeepest> place;
  unsigned depth = 0;
  bool is_placed = true;  // all have a place
};

// Of the callers of the function that calls it. Takes no lock where the loader can find unwind tables without one
// (glibc 2.35). REQUIRES: what unwind tables the code has are right, as for exceptions that pass through it.
void read_call_stack(CallStack &stack) noexcept;

// Whether `depth` places hold what they held. REQUIRES: all can be read.
bool is_still(const std::uintptr_t *code, const std::uintptr_t *const *place, unsigned depth) noexcept;

}  // namespace ration::events
