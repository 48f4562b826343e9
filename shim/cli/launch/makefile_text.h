// The lines of makefiles that may start something. Layer: cli. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/walk_state.h"

namespace ration::cli {

// The lines of these files, and of those that they include, with make's variables replaced. `given`: NAME=VALUE of
// make's command line, which the files do not change.
std::vector<std::string> lines_of_makefiles(std::vector<std::string> files, const std::vector<std::string> &given,
                                            const WalkState &state);

}  // namespace ration::cli
