// Asks the loader which objects are loaded, with the loader's lock held, because another thread may unload an object.
// Layer: preload. Threads: any; racing threads store equal values.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace ration::preload {

// Works as dl_iterate_phdr does. `visit` runs with the loader's lock held, and may take that lock again.
using Visit = int (*)(dl_phdr_info *, size_t, void *);
int for_each_object(Visit visit, void *argument);

// A library that the process may load at any time.
struct Library {
  const char *name;
  // If a library was loaded by path and has no SONAME, `name` does not find it, but its file name begins with this.
  const char *file_prefix;
  void *handle;        // set once the library is found; from then on, it stays loaded
  uint64_t absent_at;  // 1 + the number of objects ever loaded, as of the last failed search; 0: none failed
};

// The handle that an earlier call of loaded_library() found, or nullptr.
inline void *found_library(const Library &library) {
  return __atomic_load_n(&library.handle, __ATOMIC_ACQUIRE);
}

// The library's handle; nullptr if it is not loaded. Never loads it. Repeated searches cost nothing until another
// object is loaded.
void *loaded_library(Library &library);

// True if a symbol look-up through all objects reaches this library before `map`. REQUIRES: `map` stays loaded.
bool precedes(const link_map &map);

}  // namespace ration::preload
