// Where the core lies, and whether it is all there.
// Layer: front. Threads: any; no state. Called from: the door, at the first CUDA call.
#pragma once

#include <stddef.h>

namespace ration::front {

inline constexpr size_t kPathMax = 4096;

// The core lies beside the front, whatever the current folder is. False: the front's own file cannot be told.
// `path` holds kPathMax bytes.
bool core_path(char *path);

// A file that ends before its last section header was not written to its end: the loader would map it all the same and
// the process would die of SIGBUS. False also where it cannot be read.
bool is_whole_file(const char *path);

}  // namespace ration::front
