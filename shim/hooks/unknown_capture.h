// Functions of newer drivers that no hook knows, but whose names suggest that they begin captures.
// Layer: hooks. Threads: any; touches no lock.
// Design: design/quarantine.md#unknown-captures
#pragma once

namespace ration::hooks {

// True if `name`, which the program passed to cuGetProcAddress, may be a function that begins a capture.
bool may_begin_capture(const char *name);

// Returns the function that the program gets in place of `function`. The returned function first notes the capture, so
// that Ration makes no call that could invalidate it, and then calls `function`. Only the first few names get such a
// function. For any other name, the capture is noted at once and `function` is returned.
void *announcing(const char *name, void *function);

// Called before a function that may begin a capture is called. Defined in capture.cc.
void note_unknown_capture(const char *name) noexcept;

}  // namespace ration::hooks
