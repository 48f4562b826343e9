#include "cli/usage/bars.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace ration::cli {

namespace {

// REQUIRES: whole is not 0. Exact also where the product has more than 64 bits.
std::uint64_t scaled(std::uint64_t part, std::uint64_t whole, std::uint64_t length) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(std::min(part, whole)) * length / whole);
}

void append_times(std::string &text, const char *character, std::size_t times) {
  for (; times > 0; --times) {
    text += character;
  }
}

constexpr std::array<const char *, 9> kBlocks = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                 "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::array<const char *, 9> kAscii = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};

}  // namespace

BarParts parts_of(const BarFigures &figures, std::size_t length) {
  const std::uint64_t held = std::max(figures.used, figures.reserved);
  const std::uint64_t whole = std::max<std::uint64_t>(figures.whole != 0 ? figures.whole : held, 1);
  const auto visible = [&](std::uint64_t bytes) {
    return std::max<std::size_t>(scaled(bytes, whole, length), bytes != 0 && length != 0 ? 1 : 0);
  };
  BarParts parts;
  parts.used = visible(figures.used);
  parts.reserved = visible(held) - parts.used;
  if (held > figures.used && parts.reserved == 0 && parts.used < length) {
    parts.reserved = 1;
  }
  return parts;
}

std::string bar_of(const BarFigures &figures, std::size_t width, bool is_unicode) {
  if (width < 3) {
    return {};
  }
  const BarParts parts = parts_of(figures, width - 2);
  std::string bar = "[";
  append_times(bar, is_unicode ? "\u2588" : "#", parts.used);
  append_times(bar, is_unicode ? "\u2592" : "=", parts.reserved);
  bar.append(width - 2 - parts.used - parts.reserved, ' ');
  return bar + "]";
}

std::string sparkline_of(const std::vector<std::uint64_t> &values, std::uint64_t most, std::size_t width,
                         bool is_unicode) {
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(std::min(values.size(), width));
  const std::uint64_t highest = begin == values.end() ? 0 : *std::max_element(begin, values.end());
  const std::uint64_t whole = std::max<std::uint64_t>({most, highest, 1});
  std::string line;
  for (auto each = begin; each != values.end(); ++each) {
    const std::uint64_t height = *each == 0 ? 0 : std::max<std::uint64_t>(scaled(*each, whole, kBlocks.size() - 1), 1);
    line += (is_unicode ? kBlocks : kAscii)[height];
  }
  return line;
}

}  // namespace ration::cli
