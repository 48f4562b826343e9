// Finds the core's file and checks that it is complete.
// Layer: preload. Threads: any; no state. Called from: first_use.cc, at the first CUDA call.
#pragma once

#include <stddef.h>

namespace ration::preload {

inline constexpr size_t kPathMax = 4096;

// Writes the path of the core, which is in the folder of libration.so, whatever the current folder is. Returns false if
// the file of libration.so cannot be determined. `path` has room for kPathMax bytes.
bool core_path(char *path);

// False if the file ends before its last section header, or cannot be read. The loader would still map such an
// incomplete file, and the process would die of SIGBUS.
bool is_whole_file(const char *path);

}  // namespace ration::preload
