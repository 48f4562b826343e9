#include "config/values/quotes.h"

#include <algorithm>

namespace ration::config {

namespace {

constexpr std::size_t kLongestShown = 80;

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

}  // namespace

bool is_plain(std::string_view value) {
  return std::all_of(value.begin(), value.end(), is_printable);
}

std::string printable(std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : value) {
    if (is_printable(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

std::string shown(std::string_view value) {
  std::string out = printable(value.substr(0, kLongestShown));
  if (value.size() > kLongestShown) {
    out += "... (" + std::to_string(value.size()) + " characters)";
  }
  return out;
}

std::string quoted(std::string_view value) {
  std::string out = "\"";
  out += shown(value);
  out += '"';
  return out;
}

}  // namespace ration::config
