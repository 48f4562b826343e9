// The text of a file, plain or xz-compressed, and its lines.
// Layer: the replay program. Threads: values, no shared state.
#pragma once

#include <string>
#include <string_view>

namespace ration::pool::replay {

// A file's bytes. Throws TraceError: cannot be read.
std::string read_file(const std::string &path);

// `content` itself, or what it is the compressed form of. Throws TraceError: damaged. `path` is for messages only.
std::string unpack(const std::string &path, const std::string &content);

// The next line without its end; `text` begins behind it afterwards.
std::string_view take_line(std::string_view &text);

}  // namespace ration::pool::replay
