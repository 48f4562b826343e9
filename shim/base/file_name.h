// The last part of a path. Layer: base. Threads: pure functions.
#pragma once

#include <string_view>

namespace ration {

// The whole path, if it contains no slash.
constexpr std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace ration
