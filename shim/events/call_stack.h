// The return addresses of the calling thread, from the innermost call outwards.
// Layer: events (a leaf). Threads: concerns the calling thread only.
#pragma once

#include <array>
#include <cstdint>

namespace ration::events {

struct CallStack {
  static constexpr unsigned kDeepest = 128;  // calls further out are left out

  std::array<std::uintptr_t, kDeepest> code;
  // Where on the stack each address was found. Reading these places again shows whether the thread is still in the same
  // calls.
  std::array<const std::uintptr_t *, kDeepest> place;
  unsigned depth = 0;
  bool is_placed = true;  // true if all addresses have an entry in `place`
};

// Reads the stack from the caller of the calling function outwards. Takes no lock if the loader can find unwind tables
// without one (glibc 2.35). REQUIRES: if the code has unwind tables, they are correct, as exceptions that pass through
// the code also require.
void read_call_stack(CallStack &stack) noexcept;

// True if the first `depth` places still hold the addresses in `code`. REQUIRES: all these places can be read.
bool is_still(const std::uintptr_t *code, const std::uintptr_t *const *place, unsigned depth) noexcept;

}  // namespace ration::events
