// Quotes values of the user in messages. Layer: config. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// Printable ASCII as it is, other bytes as \xNN, cut after 80 characters: always one line.
std::string shown(std::string_view value);

// The same without the cut, for values that a message needs whole.
std::string printable(std::string_view value);

// shown() between quotation marks.
std::string quoted(std::string_view value);

// Whether every character is printable ASCII.
bool is_plain(std::string_view value);

}  // namespace ration::config
