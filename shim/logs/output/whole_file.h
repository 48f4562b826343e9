// Replaces a file atomically, so that a reader sees either the old text or the new text. Also declares some of the
// steps, for other files. Layer: logs. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ration::logs {

// True if a file begins like a log, compressed or not. No output may replace a log.
bool is_log(const std::string &path);

// Writes the whole text. Returns false on failure; errno then says why.
bool write_all(int file, std::string_view text);

// A template for mkstemp(3), in the folder of `path` because rename cannot cross file systems. The file is hidden and
// its name does not end in .prom, so that no collector reads it.
std::string temporary_beside(const std::string &path);

// Creates the file with mode 0644, regardless of the umask. Replaces only a regular file that is not a log. If nothing
// was changed, returns the reason; empty on success.
[[nodiscard]] std::string replace_file(const std::string &path, std::string_view text);

}  // namespace ration::logs
