// The driver's functions that the program looks up by dlsym but that are not in our catalogue.
// Layer: preload. Threads: any; no lock.
#pragma once

namespace ration::preload {

// Notes that the program got the driver's own function with this name.
void note_given(const char *name);

// Notes a look-up that we pass on to the loader. Since we do not see the answer, the look-up counts if the driver has
// the name. Until a driver is known to be loaded, names are kept for note_driver(). May leave an error for dlerror.
void note_passed_on(const char *name);

// Call this once the driver is found, to look up all names that were passed on until then. May leave an error for
// dlerror.
void note_driver(void *driver);

}  // namespace ration::preload
