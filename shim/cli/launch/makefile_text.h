// The lines of makefiles that may start something. Layer: cli. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/walk_state.h"

namespace ration::cli {

struct MakeCall {
  std::vector<std::string> files;
  std::vector<std::string> goals;        // empty: the first target
  std::vector<std::string> assignments;  // NAME=VALUE, which override those of the files
};

// The lines of these files, and of those that they include, that make runs for the goals, with make's variables
// replaced. Lines of which that is not known count as well.
std::vector<std::string> lines_of_makefiles(MakeCall call, const WalkState &state);

}  // namespace ration::cli
