// Replaces a file atomically: a reader sees the old text or the new one. Layer: cli. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ration::cli {

// Mode 0644 whatever the umask. Only a regular file is replaced. Returns why nothing was changed, empty on success.
[[nodiscard]] std::string replace_file(const std::string &path, std::string_view text);

}  // namespace ration::cli
