#include "cli/base/text_width.h"

#include <langinfo.h>

#include <algorithm>
#include <clocale>
#include <cwchar>

namespace ration::cli {

namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

// The number of bytes up to the next one that begins a character.
std::size_t bytes_of_character(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && continues(text[end])) {
    ++end;
  }
  return end - at;
}

// wcwidth(3) knows only characters of the locale; wchar_t is Unicode in glibc.
std::size_t columns_of(std::string_view character) {
  if (character.size() == 1) {
    return continues(character.front()) ? 0 : 1;
  }
  if (character.size() > 4) {  // not a character
    return 1;
  }
  const auto first = static_cast<unsigned char>(character.front());
  wchar_t code = first & (character.size() == 2 ? 0x1f : character.size() == 3 ? 0x0f : 0x07);
  for (const char byte : character.substr(1)) {
    code = (code << 6) | (byte & 0x3f);
  }
  const int columns = wcwidth(code);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

}  // namespace

bool use_locale() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = bytes_of_character(text, at);
    width += columns_of(text.substr(at, length));
    at += length;
  }
  return width;
}

std::string truncate(std::string text, std::size_t width) {
  if (width_of(text) <= width) {
    return text;
  }
  const std::size_t most = width > 1 ? width - 1 : width;
  std::size_t kept = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const std::size_t length = bytes_of_character(text, bytes);
    kept += columns_of(std::string_view(text).substr(bytes, length));
    if (kept > most) {
      break;
    }
    bytes += length;
  }
  text.resize(bytes);
  return width > 1 ? text + '+' : text;
}

}  // namespace ration::cli
