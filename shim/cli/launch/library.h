// The library that programs are started under: where it is installed. Layer: cli. Threads: one.
#pragma once

#include <string>

#include "cli/base/refusal.h"

namespace ration::cli {

struct Library {
  std::string preload;    // libration.so
  std::string core;       // libration-core.so, which that loads
  std::string simulator;  // the folder of the simulated driver
};

// Where the library that is installed with this program must be; no part of it is looked at. Throws Refusal where /proc
// is not mounted.
Library expected_library();
// Whether LD_PRELOAD can name it.
bool can_be_preloaded(const std::string &path);

// Throws Refusal.
void require_readable(const std::string &path);
// The library that is installed with this program. Throws Refusal where a part of it is missing.
Library find_library();

}  // namespace ration::cli
