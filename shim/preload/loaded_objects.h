// Asks the loader which objects are loaded, under its own lock: another thread may unload one at any time.
// Layer: preload. Threads: any; racing threads store equal values.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace ration::preload {

// As dl_iterate_phdr, whose lock is held meanwhile and may be taken again.
using Visit = int (*)(dl_phdr_info *, size_t, void *);
int for_each_object(Visit visit, void *argument);

// A library that the process may load at any time.
struct Library {
  const char *name;
  // A library that was loaded by path and has no SONAME is not found under a fixed name, but by its file's.
  const char *file_prefix;
  void *handle;        // once it was found; it then stays loaded
  uint64_t absent_at;  // 1 + how many objects had ever been loaded when it was last missed; 0: never missed
};

// What loaded_library() found before, if anything.
inline void *found_library(const Library &library) {
  return __atomic_load_n(&library.handle, __ATOMIC_ACQUIRE);
}

// Its handle; nullptr: not loaded. Never loads it. While no object is added, a library that was missed costs no search.
void *loaded_library(Library &library);

// Whether look-ups through all objects reach this library before `map`. REQUIRES: `map` stays loaded.
bool precedes(const link_map &map);

}  // namespace ration::preload
