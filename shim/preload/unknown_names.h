// The driver's functions that the program looks up by dlsym and that are not in our catalogue.
// Layer: preload. Threads: any; no lock.
#pragma once

namespace ration::preload {

// Notes that the program was given the driver's function of this name.
void note_given(const char *name);

// Notes a look-up that goes on to the loader, whose answer we do not see: it counts if the driver has the name. If no
// driver is known to be loaded, the name is kept until one is. May leave an error for dlerror.
void note_passed_on(const char *name);

// Call this once the driver is found, to ask it for all names passed on before. May leave an error for dlerror.
void note_driver(void *driver);

}  // namespace ration::preload
