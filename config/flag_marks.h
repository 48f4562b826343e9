// Which variables were set by an option of `ration run`: their values are known again by a checksum, so that a script
// that sets one anew is told as its source. Layer: config. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// `marks` and, in place of an older one of `key`, that its value is `value` by an option.
std::string mark_flag(std::string_view marks, std::string_view key, std::string_view value);

bool is_marked(std::string_view marks, std::string_view key, std::string_view value);

}  // namespace ration::config
