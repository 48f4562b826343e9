// The help screen of `ration top`. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

// At most 60 columns wide. `is_unicode`: the terminal can show UTF-8.
std::vector<std::string> help_lines(bool is_unicode);

}  // namespace ration::cli
