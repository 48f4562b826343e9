// Replaces a file atomically, a reader sees the old text or the new one; and what does so elsewhere shares. Layer:
// logs. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ration::logs {

// Whether a file begins as a log, compressed or not, which no output may replace.
bool is_log(const std::string &path);

// Writes the whole text. False: errno says why.
bool write_all(int file, std::string_view text);

// For mkstemp(3). In the same folder, because rename cannot cross file systems; hidden and not *.prom, so that no
// collector reads it.
std::string temporary_beside(const std::string &path);

// Mode 0644 whatever the umask. Only a regular file that is no log is replaced. Returns why nothing was changed, empty
// on success.
[[nodiscard]] std::string replace_file(const std::string &path, std::string_view text);

}  // namespace ration::logs
