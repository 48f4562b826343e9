// Functions for plain ASCII text, whatever locale the program has set. Layer: config. Threads: pure functions.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace ration::config {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}

// `text` without the white space (as C and Python define it) at either end.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace ration::config
