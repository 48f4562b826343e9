#include "events/call_stack.h"

#include <unwind.h>

// For code that reads the frames of other functions, which AddressSanitizer would report and ThreadSanitizer cannot
// track.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RATION_READS_FRAMES __attribute__((no_sanitize("address", "thread")))
#else
#define RATION_READS_FRAMES
#endif

namespace ration::events {
namespace {

struct Walk {
  CallStack &stack;
  std::uintptr_t callee_end = 0;  // where the frame of the called function ends
  int skipped = 0;
};

// Finds where the return address `code` is stored. libgcc gives for each call the code, and the end of the frame of the
// called function. The return address is below that end: in the last word on x86-64, elsewhere where the prologue put
// it.
RATION_READS_FRAMES const std::uintptr_t *place_of(std::uintptr_t code, std::uintptr_t from, std::uintptr_t to) {
  constexpr std::uintptr_t kFarthest = 64 * 1024;
  if (to < from || to - from > kFarthest) {
    from = to - sizeof(std::uintptr_t);
  }
  for (std::uintptr_t at = to - sizeof(std::uintptr_t); at >= from; at -= sizeof(std::uintptr_t)) {
    const auto *place = reinterpret_cast<const std::uintptr_t *>(at);
    if (*place == code) {
      return place;
    }
  }
  return nullptr;
}

_Unwind_Reason_Code step(_Unwind_Context *context, void *argument) {
  auto &[stack, callee_end, skipped] = *static_cast<Walk *>(argument);
  int interrupted = 0;
  const std::uintptr_t code = _Unwind_GetIPInfo(context, &interrupted);
  const std::uintptr_t end = _Unwind_GetCFA(context);
  if (skipped < 2) {  // read_call_stack(), and the function that called it
    ++skipped;
    callee_end = end;
    return _URC_NO_REASON;
  }
  if (code == 0 || stack.depth == CallStack::kDeepest) {
    return _URC_END_OF_STACK;
  }
  const std::uintptr_t *place = interrupted != 0 ? nullptr : place_of(code, callee_end, end);
  stack.is_placed = stack.is_placed && place != nullptr;
  stack.code[stack.depth] = code;
  stack.place[stack.depth] = place;
  ++stack.depth;
  callee_end = end;
  return _URC_NO_REASON;
}

}  // namespace

__attribute__((noinline)) void read_call_stack(CallStack &stack) noexcept {
  Walk walk{stack};
  stack.depth = 0;
  stack.is_placed = true;
  _Unwind_Backtrace(&step, &walk);
}

RATION_READS_FRAMES bool is_still(const std::uintptr_t *code, const std::uintptr_t *const *place,
                                  unsigned depth) noexcept {
  for (unsigned i = 0; i < depth; ++i) {
    if (*place[i] != code[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace ration::events
