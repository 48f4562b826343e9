#include "cli/wrapped_text.h"

#include <algorithm>

namespace ration::cli {

namespace {

// Bytes that continue a character of UTF-8 are not counted.
std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }));
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::string_view first) {
  const std::size_t indent = characters_of(first);
  std::vector<std::string> lines = {std::string(first)};
  bool has_word = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) {
      continue;
    }
    const std::size_t used = characters_of(lines.back());
    if (has_word && (used >= width || characters_of(word) + 1 > width - used)) {
      lines.emplace_back(indent, ' ');
      has_word = false;
    }
    lines.back().append(has_word ? 1 : 0, ' ').append(word);
    has_word = true;
  }
  return lines;
}

}  // namespace ration::cli
