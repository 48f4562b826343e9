// How many columns of a terminal text takes, and text that fits so many. Layer: cli. Threads: pure functions, but for
// use_locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ration::cli {

// Measures and shows characters as LC_ALL, LC_CTYPE and LANG say. False: that is not UTF-8.
bool use_locale();

// Columns of UTF-8: two for wide characters, none for those that combine with the one before. One for each character
// in a locale that is not of UTF-8, or before use_locale().
std::size_t width_of(std::string_view text);

// What of it fits into `width` columns; a '+' replaces the end where something is missing.
std::string truncate(std::string text, std::size_t width);

}  // namespace ration::cli
