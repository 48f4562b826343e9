// The files of one log (shim/events/README.md, Which file): plain or compressed, in one part or several. Layer: logs.
#pragma once

#include <array>
#include <string>

namespace ration::logs {

// The file to read if `path` names a log: `path` itself if it exists, else the same log with or without compression.
// Otherwise the new part of a process that was killed while it began that part. Returns `path` if none of these exists.
std::string present_log(const std::string &path);

// The possible names of the part before the last one of a log.
std::array<std::string, 2> names_of_previous(const std::string &path);

}  // namespace ration::logs
