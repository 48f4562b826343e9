// The library that is preloaded into programs, and its installed location. Layer: cli. Threads: one.
#pragma once

#include <string>

#include "cli/base/refusal.h"

namespace ration::cli {

struct Library {
  std::string preload;    // libration.so
  std::string core;       // libration-core.so, which libration.so loads
  std::string simulator;  // the folder of the simulated driver
};

// The paths of the library that was installed with this program, without a check whether the files exist. Throws
// Refusal if /proc is not mounted.
Library expected_library();
// True if LD_PRELOAD can hold the path.
bool can_be_preloaded(const std::string &path);

// Throws Refusal if the file cannot be read.
void require_readable(const std::string &path);
// The library that was installed with this program. Throws Refusal if a part of it is missing.
Library find_library();

}  // namespace ration::cli
