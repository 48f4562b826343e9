// The files of one log (shim/events/README.md, Which file): plain or compressed, whole or in parts. Layer: logs.
#pragma once

#include <array>
#include <string>

namespace ration::logs {

// The file to read where `path` names a log: that itself where it is there, else the same log compressed, or not
// compressed, or as a process left it that was killed while it began a new part. `path` where none is there.
std::string present_log(const std::string &path);

// Where the part before the last one of a log may be.
std::array<std::string, 2> names_of_previous(const std::string &path);

}  // namespace ration::logs
