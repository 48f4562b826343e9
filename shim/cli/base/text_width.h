// Measures text in terminal columns, and truncates it to a number of columns. Layer: cli.
// Threads: pure functions, except use_locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ration::cli {

// Makes these functions treat characters as LC_ALL, LC_CTYPE and LANG specify. False if they do not select UTF-8.
bool use_locale();

// The terminal columns that UTF-8 text takes: two for a wide character, none for one that combines with the character
// before it. Without a UTF-8 locale, and before use_locale(), each character takes one.
std::size_t width_of(std::string_view text);

// The part of `text` that fits into `width` columns. If something is cut off, the part ends with '+'.
std::string truncate(std::string text, std::size_t width);

}  // namespace ration::cli
