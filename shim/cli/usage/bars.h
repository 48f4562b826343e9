// Bars and sparklines of characters. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ration::cli {

struct BarFigures {
  std::uint64_t used = 0, reserved = 0;
  std::uint64_t whole = 0;   // a limit, or a device's size; 0: not known, so that what is reserved is the whole
  std::uint64_t others = 0;  // held by others, where the whole is a device
};

// Which of a bar's characters, by place, say what; the rest is free.
struct BarParts {
  std::size_t used = 0, reserved = 0, others = 0;
  std::size_t eighths = 0;  // of the last character of what is used
  bool ends_half = false;   // only half of the last character of what is reserved
};
// To the nearest eighth of a character, and what is reserved to the nearest half; what is used is of whole characters
// where what is reserved goes on behind it. Something has one mark at least, and only the whole fills the bar.
BarParts parts_of(const BarFigures &figures, std::size_t length);

// "[####=-    ]", `width` characters with the brackets: used, and reserved beyond that. Empty below three. In ASCII a
// part of what is used is '+', less than a half ':'; a half of what is reserved '-'; what others hold, behind, is 'x'.
std::string bar_of(const BarFigures &figures, std::size_t width, bool is_unicode);

// The latest `width` values, one block each; `most` is as high as it gets, or the largest value where that is more.
std::string sparkline_of(const std::vector<std::uint64_t> &values, std::uint64_t most, std::size_t width);

}  // namespace ration::cli
