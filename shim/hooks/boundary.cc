// Finds out whether an earlier call, which left its mark on the thread, is still running.
// Layer: hooks. Threads: concerns the calling thread only. Called from: hook, only if there is a mark.
#include "hooks/boundary.h"

#include <unwind.h>

#include "base/held.h"

// The first address of this library and the end of its code, as symbols that the linker defines.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
}

namespace ration::hooks {
namespace {

enum class Earlier {
  lives,  // it is on the stack, among the callers of this call
  gone,   // its place on the stack belongs to another function by now
  unseen
};

bool is_ours(std::uintptr_t code) {
  return reinterpret_cast<std::uintptr_t>(__ehdr_start) <= code && code < reinterpret_cast<std::uintptr_t>(etext);
}

// Walks up the callers. For each, libgcc gives the code address and the stack pointer; a function's frame reaches to
// that of its caller. If a signal interrupted a function, the handler may have run on another stack.
struct Search {
  std::uintptr_t wanted;
  Earlier found = Earlier::unseen;
  std::uintptr_t caller = 0;  // code of the nearest caller outside this library
  std::uintptr_t code = 0;
  std::uintptr_t frame = 0;
  bool by_signal = false;    // a function on the way was interrupted
  bool in_this_call = true;  // still within the hook that asks, up to its body: the driver may have jumped there
  bool was_body = false;

  _Unwind_Reason_Code look(std::uintptr_t next_code, std::uintptr_t next_frame, bool interrupted, bool is_body) {
    if (frame != 0 && !interrupted && frame <= wanted && wanted < next_frame) {
      found = is_ours(code) && !in_this_call ? Earlier::lives : Earlier::gone;
      return _URC_END_OF_STACK;
    }
    by_signal = by_signal || interrupted;
    in_this_call = in_this_call && !was_body && is_ours(next_code);
    if (caller == 0 && !is_ours(next_code)) {
      caller = next_code;
    }
    code = next_code;
    frame = next_frame;
    was_body = is_body;
    return _URC_NO_REASON;
  }
};

_Unwind_Reason_Code look(_Unwind_Context *context, void *search) {
  int interrupted = 0;
  const std::uintptr_t code = _Unwind_GetIPInfo(context, &interrupted);
  const bool at_body = is_body(reinterpret_cast<const void *>(_Unwind_GetRegionStart(context)));
  return static_cast<Search *>(search)->look(code, _Unwind_GetCFA(context), interrupted != 0, at_body);
}

}  // namespace

// The walk does not see a call on another stack, nor a call whose place no function has overwritten yet: such a mark
// may or may not be valid. A call by the driver then counts as nested, because the outer call accounts for its bytes; a
// call by the program is limited.
void Inside::enter_beside() noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(before_)};
  _Unwind_Backtrace(&look, &search);
  nested_ =
      search.found == Earlier::lives ||
      (search.found == Earlier::unseen && preload_abi()->in_driver(reinterpret_cast<const void *>(search.caller)) != 0);
  if (nested_) {
    return;
  }
  if (search.found == Earlier::gone) {
    before_ = nullptr;
  }
  thread_->call = this;
  thread_->stack = 0;
  held::release_left();
}

bool in_interrupted_call() noexcept {
  const void *const call = preload_abi()->thread()->call;
  if (call == nullptr) {
    return false;
  }
  Search search{reinterpret_cast<std::uintptr_t>(call)};
  _Unwind_Backtrace(&look, &search);
  return search.found == Earlier::lives && search.by_signal;
}

}  // namespace ration::hooks
