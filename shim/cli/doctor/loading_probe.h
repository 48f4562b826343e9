// Whether the dynamic linker loads the library, tried by a process that is started for it: a damaged file ends that
// process alone. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/run/environment_block.h"

namespace ration::cli::doctor {

// One for each file that cannot be loaded; empty: none.
std::vector<std::string> errors_of_loading(const EnvironmentBlock &environment);

// The started process. Returns the exit status.
int answer_loading();

}  // namespace ration::cli::doctor
