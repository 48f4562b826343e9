// Replaces a file atomically: a reader sees either the old text or the new one. Also declares the steps that other code
// uses. Layer: logs. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ration::logs {

// True if a file begins like a log, compressed or not. No output may replace a log.
bool is_log(const std::string &path);

// Writes the whole text. False: it failed, and errno says why.
bool write_all(int file, std::string_view text);

// A template for mkstemp(3). It is in the folder of `path`, because rename cannot cross file systems. The file is
// hidden and does not end in .prom, so that no collector reads it.
std::string temporary_beside(const std::string &path);

// Creates the file with mode 0644, regardless of the umask. Replaces only a regular file that is not a log. Returns why
// nothing was changed; empty on success.
[[nodiscard]] std::string replace_file(const std::string &path, std::string_view text);

}  // namespace ration::logs
