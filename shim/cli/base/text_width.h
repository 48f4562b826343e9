// Measures text in terminal columns, and truncates it to a number of columns. Layer: cli.
// Threads: pure functions, except use_locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ration::cli {

// Makes these functions follow LC_ALL, LC_CTYPE and LANG. Returns false if these variables do not select UTF-8.
bool use_locale();

// The number of terminal columns that UTF-8 text takes: two for a wide character, none for a combining character.
// Without a UTF-8 locale, and before use_locale(), every character counts as one column.
std::size_t width_of(std::string_view text);

// The beginning of `text` that fits into `width` columns. If anything is cut off, the result ends with '+'.
std::string truncate(std::string text, std::size_t width);

}  // namespace ration::cli
