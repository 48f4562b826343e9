// `ration env --files` and `ration env --check`. Layer: cli. Threads: one.
#pragma once

#include <string>
#include <vector>

namespace ration::cli {

// Prints a line for each settings file, the highest precedence first. False if a file is refused or stdout fails.
bool list_settings_files(bool as_json);
// Logs a line for each mistake in these files, or prints all mistakes as JSON. Returns true if there are none.
bool check_settings_files(const std::vector<std::string> &paths, bool as_json);

}  // namespace ration::cli
