// A file that is replaced as a whole: whoever reads it sees the old text or the new one. Layer: cli. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ration::cli {

// Mode 0644 whatever the umask. Only a regular file is replaced. Empty, or why nothing was changed.
[[nodiscard]] std::string replace_file(const std::string &path, std::string_view text);

}  // namespace ration::cli
