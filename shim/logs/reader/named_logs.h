// Removes duplicates from the logs that a user named. Layer: logs. Threads: none of its own.
#pragma once

#include <string>
#include <vector>

namespace ration::logs {

// Leaves out a path if another path leads to the same log, or to the same part of a log. The paths may differ by a link
// or by .zst; one of them may also lead to a copy, to the part before the last one, or to standard input. For each path
// left out, prints a line that names `verb`. Keeps the order, and keeps paths that cannot be read.
std::vector<std::string> each_log_once(const std::string &verb, const std::vector<std::string> &paths);

}  // namespace ration::logs
