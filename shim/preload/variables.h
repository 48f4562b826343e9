// Handles variables that are named like hooked functions. Libraries that load the driver themselves (such as cuew)
// often keep its functions in exported variables with the functions' names. The exports of libration.so come first in
// search order. So the loader makes such a library's references to its own variables point to our functions, which the
// library would overwrite.
// Layer: preload. Threads: any.
// Design: design/interception.md#variables-named-like-hooks
#pragma once

namespace ration::preload {

// In all loaded objects, binds each reference to such a variable to the library's own variable again.
void return_variables();

// Call this before an object is loaded. `file` may be nullptr. If `file` names the driver or NVML, the variables are
// about to be set.
void variables_may_come(const char *file);
// True if objects may have been loaded since the last return_variables().
bool may_have_new_variables();

}  // namespace ration::preload
