// The driver's functions that the program looks up by dlsym and that the catalogue lacks.
// Layer: preload. Threads: any; no lock.
#pragma once

namespace ration::preload {

// The program was given the driver's function of this name.
void note_given(const char *name);

// A look-up of this name goes on to the loader, whose answer is not seen: it counts if the driver has the name. While
// no driver is known to be loaded, the name is kept until one is. May leave an error for dlerror.
void note_passed_on(const char *name);

// The driver has been found: what was passed on before is looked up there. May leave an error for dlerror.
void note_driver(void *driver);

}  // namespace ration::preload
