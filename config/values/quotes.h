// Values of the user, and names of others, in messages. Layer: config. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ration::config {

// UTF-8 as it is; what a terminal would act upon, and bytes that are no text, as \xNN: always one line. Cut after 80
// bytes.
std::string shown(std::string_view value);

// The same without the cut, for values that a message needs whole.
std::string printable(std::string_view value);

// The same for a terminal without UTF-8: printable ASCII, and \xNN.
std::string ascii_only(std::string_view value);

// shown() between quotation marks.
std::string in_quotes(std::string_view value);

// What is likely to have gone wrong with characters that word processors and web pages put in place of plain ones:
// "; likely cause: an en dash (–) for a minus". For the end of a line that shows them; empty: it has none.
std::string likely_cause(std::string_view line);

}  // namespace ration::config
