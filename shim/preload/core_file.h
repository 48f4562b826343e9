// Finds the core's file and checks that it is complete.
// Layer: preload. Threads: any; no state. Called from: first_use.cc, at the first CUDA call.
#pragma once

#include <stddef.h>

namespace ration::preload {

inline constexpr size_t kPathMax = 4096;

// The core is in the folder of libration.so, whatever the current folder is. False: the file of libration.so cannot be
// determined. `path` holds kPathMax bytes.
bool core_path(char *path);

// A file that ends before its last section header is incomplete: the loader would map it nevertheless and the process
// would die of SIGBUS. False also where it cannot be read.
bool is_whole_file(const char *path);

}  // namespace ration::preload
