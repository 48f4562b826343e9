// How a value of the user is repeated in a line of ours. Layer: config. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// Printable ASCII as it is, the rest as \xNN, cut after 80 characters: always one line, whatever was written.
std::string shown(std::string_view value);

// The same, however long it is: what is said of it needs the whole.
std::string printable(std::string_view value);

// As shown, between quotation marks.
std::string quoted(std::string_view value);

// True where every character is printable ASCII.
bool is_plain(std::string_view value);

}  // namespace ration::config
