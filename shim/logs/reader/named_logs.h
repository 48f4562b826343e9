// The logs that a user named, each of them once. Layer: logs. Threads: none of its own.
#pragma once

#include <string>
#include <vector>

namespace ration::logs {

// Leaves out what names a log, or a part of one, that another path names too: through a link, under the name with or
// without .zst, as a copy, as the part before the last one, as standard input. A line in the name of `verb` says each.
// Keeps the order, and what cannot be read.
std::vector<std::string> each_log_once(const std::string &verb, const std::vector<std::string> &paths);

}  // namespace ration::logs
