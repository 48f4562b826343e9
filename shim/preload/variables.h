// Variables that are named like hooked functions. Libraries that load the driver themselves (such as cuew) often keep
// its functions in exported variables with the functions' names. The exports of libration.so come first in search
// order. So the loader binds such a library's references to its own variables to our functions instead, and the library
// would overwrite them.
// Layer: preload. Threads: any.
// Design: design/interception.md#variables-named-like-hooks
#pragma once

namespace ration::preload {

// Binds each such reference, in all loaded objects, to the library's own variable.
void return_variables();

// Call this before an object is loaded. `file` may be nullptr. If it names the driver or NVML, the variables are about
// to be set.
void variables_may_come(const char *file);
// True if objects may have been loaded since the last return_variables().
bool may_have_new_variables();

}  // namespace ration::preload
