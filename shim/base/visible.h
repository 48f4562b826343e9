// Makes text safe to print as one line on a terminal: foreign names and text in it can neither begin a second line nor
// move the cursor.
// Layer: base. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace ration {

// Replaces line ends with blanks and other control characters with `\xNN`. Keeps everything else, including UTF-8.
// Throws only bad_alloc.
inline std::string visible(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r') {
      line += ' ';
    } else if (byte < ' ' || byte == 0x7f) {
      line += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace ration
