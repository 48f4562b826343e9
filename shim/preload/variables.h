// Variables that are named like hooked functions. Libraries that load the driver by themselves often keep its functions
// in exported variables of the same names (cuew does). This library's functions come first in the search order, so the
// loader binds those libraries' own references to the functions, which they would then write to.
// Layer: preload. Threads: any.
// Design: design/interception.md#variables-named-like-hooks
#pragma once

namespace ration::preload {

// Binds each such reference to the library's variable, in all objects that are loaded.
void return_variables();

// Before an object is loaded. `file` may be nullptr. Where it is the driver or NVML, the variables are about to be set.
void variables_may_come(const char *file);
// Whether objects may have been loaded since the last return_variables().
bool may_have_new_variables();

}  // namespace ration::preload
