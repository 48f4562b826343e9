// Reads a whole file. Layer: cli. Threads: any.
#pragma once

#include <optional>
#include <string>

namespace ration::cli {

// Returns nullopt if the file cannot be read.
std::optional<std::string> file_text(const std::string &path);

}  // namespace ration::cli
