// Prepares values that the user wrote, and foreign names, for messages. Layer: config. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// Keeps valid UTF-8, but writes control characters that a terminal would obey and bytes that are not text as \xNN, so
// that the result is one line. Cuts the result after 80 bytes.
std::string shown(std::string_view value);

// Like shown(), but cuts nothing, for values that a message needs whole.
std::string printable(std::string_view value);

// Like printable(), for a terminal without UTF-8: only printable ASCII and \xNN.
std::string ascii_only(std::string_view value);

// shown() between quotation marks.
std::string in_quotes(std::string_view value);

// Names characters in `line` that word processors and web pages put in place of plain ones, as the likely cause of an
// error: "; likely cause: an en dash (–) for a minus". The result is to be appended to `line`; empty if it has none.
std::string likely_cause(std::string_view line);

}  // namespace ration::config
