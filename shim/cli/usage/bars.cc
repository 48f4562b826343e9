#include "cli/usage/bars.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/saturating.h"

namespace ration::cli {

namespace {

__extension__ using Wide = unsigned __int128;  // wide enough for the product of two sizes

// REQUIRES: whole is not 0.
std::uint64_t scaled(std::uint64_t part, std::uint64_t whole, std::uint64_t length) {
  return static_cast<std::uint64_t>(static_cast<Wide>(std::min(part, whole)) * length / whole);
}

// Rounded to the nearest, but 0 only for nothing, and `length` only for the whole.
std::size_t rounded(std::uint64_t part, std::uint64_t whole, std::size_t length) {
  if (part == 0 || part >= whole || length < 2) {
    return part == 0 ? 0 : length;
  }
  const Wide twice = (static_cast<Wide>(part) * length * 2 / whole + 1) / 2;
  return std::clamp<std::size_t>(static_cast<std::size_t>(twice), 1, length - 1);
}

void append_times(std::string &text, const char *character, std::size_t times) {
  for (; times > 0; --times) {
    text += character;
  }
}

constexpr std::array<const char *, 9> kHigh = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                               "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::array<const char *, 9> kLong = {" ",      "\u258f", "\u258e", "\u258d", "\u258c",
                                               "\u258b", "\u258a", "\u2589", "\u2588"};
constexpr std::array<const char *, 9> kLongAscii = {" ", ":", ":", ":", "+", "+", "+", "+", "#"};

}  // namespace

BarParts parts_of(const BarFigures &figures, std::size_t length) {
  const std::uint64_t held = std::max(figures.used, figures.reserved);
  const std::uint64_t whole = std::max<std::uint64_t>(figures.whole != 0 ? figures.whole : held, 1);
  const std::size_t eighths = rounded(figures.used, whole, length * 8);
  const std::size_t halves = rounded(held, whole, length * 2);
  BarParts parts;
  parts.used = (eighths + 7) / 8;
  parts.eighths = eighths - (parts.used == 0 ? 0 : (parts.used - 1) * 8);
  if (halves >= parts.used * 2 && held > figures.used && eighths >= 4) {  // leave no gap before the reserved part
    parts.used = (eighths + 4) / 8;
    parts.eighths = 8;
  }
  parts.reserved = minus_or_zero((halves + 1) / 2, parts.used);
  parts.ends_half = parts.reserved != 0 && halves % 2 == 1;
  if (parts.reserved == 0 && held > figures.used && parts.used == 1 && parts.eighths < 8 &&
      length > 1) {  // a small amount, of which more is reserved than used
    parts.reserved = 1;
    parts.ends_half = true;
  }
  const std::size_t own = parts.used + parts.reserved;
  if (figures.others != 0) {
    const std::size_t end = std::max(own + 1, rounded(held + figures.others, whole, length));
    parts.others = std::min(end, length) - own;
  }
  return parts;
}

std::string bar_of(const BarFigures &figures, std::size_t width, bool is_unicode) {
  if (width < 3) {
    return {};
  }
  const BarParts parts = parts_of(figures, width - 2);
  std::string bar = "[";
  if (parts.used != 0) {
    append_times(bar, (is_unicode ? kLong : kLongAscii)[8], parts.used - 1);
    bar += (is_unicode ? kLong : kLongAscii)[parts.eighths];
  }
  if (parts.reserved != 0) {
    append_times(bar, is_unicode ? "\u2592" : "=", parts.reserved - 1);
    bar += parts.ends_half ? (is_unicode ? "\u2591" : "-") : (is_unicode ? "\u2592" : "=");
  }
  append_times(bar, is_unicode ? "\u00d7" : "x", parts.others);
  bar.append(width - 2 - parts.used - parts.reserved - parts.others, ' ');
  return bar + "]";
}

std::string sparkline_of(const std::vector<std::uint64_t> &values, std::uint64_t most, std::size_t width) {
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(std::min(values.size(), width));
  const std::uint64_t highest = begin == values.end() ? 0 : *std::max_element(begin, values.end());
  const std::uint64_t whole = std::max<std::uint64_t>({most, highest, 1});
  std::string line;
  for (auto each = begin; each != values.end(); ++each) {
    const std::uint64_t height = *each == 0 ? 0 : std::max<std::uint64_t>(scaled(*each, whole, kHigh.size() - 1), 1);
    line += kHigh[height];
  }
  return line;
}

}  // namespace ration::cli
