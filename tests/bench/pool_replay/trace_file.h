// Reads plain and xz-compressed text files.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <string>
#include <string_view>

namespace ration::pool::replay {

// Throws TraceError: cannot be read.
std::string read_file(const std::string &path);

// `content`, decompressed where it is xz-compressed. Throws TraceError: damaged. `path` is for messages only.
std::string unpack(const std::string &path, const std::string &content);

// Removes the next line from `text`; returns it without its end.
std::string_view take_line(std::string_view &text);

}  // namespace ration::pool::replay
