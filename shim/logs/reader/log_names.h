// The files of one log (shim/events/README.md, Which file), which may be compressed and in several parts. Layer: logs.
#pragma once

#include <array>
#include <string>

namespace ration::logs {

// The file to read if `path` names a log: `path` itself if it exists, else the same log with or without compression,
// else the new part left by a process that was killed while beginning that part. If none of these exists, `path`.
std::string present_log(const std::string &path);

// The possible names of a log's previous part, that is, the part before its last one.
std::array<std::string, 2> names_of_previous(const std::string &path);

}  // namespace ration::logs
