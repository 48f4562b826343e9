// Bars and sparklines of characters. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ration::cli {

struct BarFigures {
  std::uint64_t used = 0, reserved = 0;
  std::uint64_t whole = 0;  // a limit, or a device's size; 0: not known, so that what is reserved is the whole
};

// Which of a bar's characters, by place, say what; the rest is free.
struct BarParts {
  std::size_t used = 0, reserved = 0;
};
// Truncated, but no part that is not 0 is invisible.
BarParts parts_of(const BarFigures &figures, std::size_t length);

// "[####==    ]", `width` characters with the brackets: used, and reserved beyond that. Empty below three.
std::string bar_of(const BarFigures &figures, std::size_t width, bool is_unicode);

// The latest `width` values, one character each; `most` is as high as it gets, or the largest value where that is more.
std::string sparkline_of(const std::vector<std::uint64_t> &values, std::uint64_t most, std::size_t width,
                         bool is_unicode);

}  // namespace ration::cli
