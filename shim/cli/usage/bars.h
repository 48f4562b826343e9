// Bars and sparklines made of characters. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ration::cli {

struct BarFigures {
  std::uint64_t used = 0, reserved = 0;
  std::uint64_t whole = 0;   // a limit or a device's size; 0: unknown, so reserved memory fills the bar
  std::uint64_t others = 0;  // memory held by others, if `whole` is a device's size
};

// The length of each part of a bar, in characters, from left to right. The rest of the bar shows free memory.
struct BarParts {
  std::size_t used = 0, reserved = 0, others = 0;
  std::size_t eighths = 0;  // the filled eighths of the last `used` character
  bool ends_half = false;   // only half of the last `reserved` character is filled
};
// Rounds used memory to the nearest eighth of a character and reserved memory to the nearest half. If reserved memory
// follows, used memory is rounded to whole characters. Any amount above zero gets at least one mark, and the bar is
// full only if all of `whole` is taken.
BarParts parts_of(const BarFigures &figures, std::size_t length);

// "[####=-    ]": used memory, then the memory reserved beyond it, in `width` characters including the brackets. Empty
// if `width` is below three. In ASCII, a partly used character is '+', or ':' if it is less than half used. A half
// reserved character is '-', and memory that others hold is 'x'.
std::string bar_of(const BarFigures &figures, std::size_t width, bool is_unicode);

// The latest `width` values, one block character for each. A full block stands for `most`, or for the largest value if
// that is larger.
std::string sparkline_of(const std::vector<std::uint64_t> &values, std::uint64_t most, std::size_t width);

}  // namespace ration::cli
