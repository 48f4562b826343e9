// RATION_FLAGS: which variables `ration run` set from its options, each with a checksum of its value. A script below it
// that sets a variable anew is then the source of that variable. Layer: config. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// `marks` and one more: an option gave `key` its `value`.
std::string mark_flag(std::string_view marks, std::string_view key, std::string_view value);

bool is_marked(std::string_view marks, std::string_view key, std::string_view value);

}  // namespace ration::config
