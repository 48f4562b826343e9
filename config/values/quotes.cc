#include "config/values/quotes.h"

#include <algorithm>

namespace ration::config {

namespace {

constexpr std::size_t kLongestShown = 80;

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

// The length of the character at `at` if it is complete, written in the shortest form, and not a control character;
// else 0.
std::size_t length_of_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80U) {
    return first >= ' ' && first != 0x7f ? 1 : 0;
  }
  const std::size_t length = first >= 0xf0U && first < 0xf5U ? 4 : first >= 0xe0U ? 3 : first >= 0xc2U ? 2 : 0;
  if (first >= 0xf5U || length == 0 || length > text.size() - at) {
    return 0;
  }
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if (!continues(text[i])) {
      return 0;
    }
  }
  const unsigned char second = byte(at + 1);
  const bool is_bad = (first == 0xc2U && second < 0xa0U) ||   // control characters
                      (first == 0xe0U && second < 0xa0U) ||   // longer than necessary
                      (first == 0xedU && second >= 0xa0U) ||  // half of a surrogate pair
                      (first == 0xe2U && second == 0x80U && byte(at + 2) >= 0xa8U && byte(at + 2) <= 0xaeU) ||
                      (first == 0xe2U && second == 0x81U && byte(at + 2) >= 0xa6U && byte(at + 2) <= 0xa9U) ||
                      (first == 0xf0U && second < 0x90U) || (first == 0xf4U && second >= 0x90U);
  return is_bad ? 0 : length;  // the excluded ones of e2 80 and e2 81 end lines or change the text's direction
}

std::string escaped(char c) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
}

// REQUIRES: a character for which length_of_character() is not 0.
char32_t code_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  char32_t code = character.size() == 1   ? first
                  : character.size() == 2 ? first & 0x1fU
                  : character.size() == 3 ? first & 0x0fU
                                          : first & 0x07U;
  for (const char byte : character.substr(1)) {
    code = (code << 6) | (static_cast<unsigned char>(byte) & 0x3fU);
  }
  return code;
}

struct Stray {
  char32_t first, last;
  std::string_view name;
  std::string_view rest = {};  // text after the character
  bool is_visible = true;
};

// Ranges with the same name must be adjacent.
constexpr Stray kStrays[] = {
    {0x2018, 0x201f, "typographic quotation marks"},
    {0x2032, 0x2036, "typographic quotation marks"},
    {0x2039, 0x203a, "typographic quotation marks"},
    {0x00ab, 0x00ab, "typographic quotation marks"},
    {0x00bb, 0x00bb, "typographic quotation marks"},
    {0x00a0, 0x00a0, "a non-breaking blank", {}, false},
    {0x202f, 0x202f, "a non-breaking blank", {}, false},
    {0x2007, 0x2007, "a non-breaking blank", {}, false},
    {0x2000, 0x200a, "a blank other than a plain space", {}, false},
    {0x205f, 0x205f, "a blank other than a plain space", {}, false},
    {0x3000, 0x3000, "a blank other than a plain space", {}, false},
    {0x200b, 0x200f, "an invisible character", {}, false},
    {0x2060, 0x2060, "an invisible character", {}, false},
    {0xfeff, 0xfeff, "an invisible character", {}, false},
    {0x00ad, 0x00ad, "an invisible character", {}, false},
    {0x2013, 0x2013, "an en dash", " for a minus"},
    {0x2014, 0x2015, "an em dash", " for two minuses"},
    {0x2010, 0x2012, "a typographic hyphen", " for a minus"},
    {0x2212, 0x2212, "a minus sign", " that is not a plain one"},
    {0x2026, 0x2026, "an ellipsis", " for three points"},
    {0xff01, 0xff5e, "full-width characters"},
};

// A control character such as the end of a line, as printable() writes it.
struct Control {
  std::string_view written, name;
};
constexpr Control kControls[] = {
    {"\\x0d", "a carriage return (\\x0d)"}, {"\\x0a", "a line feed (\\x0a)"}, {"\\x09", "a tab (\\x09)"}};

std::string hexadecimal(char32_t code) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string text = "U+";
  for (int shift = 12; shift >= 0; shift -= 4) {
    text += kHex[(code >> shift) & 15U];
  }
  return text;
}

}  // namespace

std::string printable(std::string_view value) {
  std::string out;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t length = length_of_character(value, at);
    out += length != 0 ? std::string(value.substr(at, length)) : escaped(value[at]);
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string ascii_only(std::string_view value) {
  std::string out;
  for (const char c : value) {
    out += c >= ' ' && c <= '~' ? std::string(1, c) : escaped(c);
  }
  return out;
}

std::string shown(std::string_view value) {
  std::size_t kept = std::min(value.size(), kLongestShown);
  while (kept < value.size() && kept > kLongestShown - 4 && continues(value[kept])) {
    --kept;
  }
  std::string out = printable(value.substr(0, kept));
  if (value.size() > kept) {
    out += "... (" + std::to_string(std::count_if(value.begin(), value.end(), [](char c) { return !continues(c); })) +
           " characters)";
  }
  return out;
}

std::string in_quotes(std::string_view value) {
  std::string out = "\"";
  out += shown(value);
  out += '"';
  return out;
}

std::string likely_cause(std::string_view line) {
  std::string causes;
  const auto begin_cause = [&] { causes += causes.empty() ? "; likely cause: " : ", "; };
  std::string_view named;  // name of the last character that was found
  for (const Stray &stray : kStrays) {
    for (std::size_t at = 0; at < line.size() && stray.name != named;) {
      const std::size_t length = length_of_character(line, at);
      const std::string_view character = line.substr(at, std::max<std::size_t>(length, 1));
      at += character.size();
      const char32_t code = length > 1 ? code_of(character) : 0;
      if (code < stray.first || code > stray.last) {
        continue;
      }
      named = stray.name;
      begin_cause();
      causes += named;
      causes += " (";
      causes += stray.is_visible ? std::string(character) : hexadecimal(code);
      causes += ')';
      causes += stray.rest;
    }
  }
  for (const Control &control : kControls) {
    if (line.find(control.written) != std::string_view::npos) {
      begin_cause();
      causes += control.name;
    }
  }
  return causes;
}

}  // namespace ration::config
