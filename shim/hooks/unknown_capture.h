// Functions of newer drivers that begin captures, by their name, and that no hook knows.
// Layer: hooks. Threads: any; touches no lock.
// Design: design/quarantine.md#unknown-captures
#pragma once

namespace ration::hooks {

// Whether cuGetProcAddress was asked for one.
bool may_begin_capture(const char *name);

// What the program gets in place of `function`: it tells policy, which then makes no call that could invalidate a
// capture, and calls the function. Names beyond the first few are told at once.
void *announcing(const char *name, void *function);

// Before such a function is called. In capture.cc.
void note_unknown_capture(const char *name) noexcept;

}  // namespace ration::hooks
