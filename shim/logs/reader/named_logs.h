// Removes duplicates from the logs that a user named. Layer: logs. Threads: none of its own.
#pragma once

#include <string>
#include <vector>

namespace ration::logs {

// Leaves out a path to a log, or to a part of one, to which another path also leads: through a link, with or without
// .zst, as a copy, as the part before the last one, or as standard input. Prints a line in the name of `verb` for each.
// Keeps the order, and keeps paths that cannot be read.
std::vector<std::string> each_log_once(const std::string &verb, const std::vector<std::string> &paths);

}  // namespace ration::logs
