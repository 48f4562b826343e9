// RATION_FLAGS: the environment variables that `ration run` set from its options, each with a checksum of its value. If
// a script that `ration run` starts sets such a variable again, that value counts as the script's. Layer: config.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// Returns `marks` plus a mark which says that an option gave `key` this `value`.
std::string mark_flag(std::string_view marks, std::string_view key, std::string_view value);

bool is_marked(std::string_view marks, std::string_view key, std::string_view value);

}  // namespace ration::config
