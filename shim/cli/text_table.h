// Tables of text that fit a width, and counts as words. Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ration::cli {

inline constexpr std::size_t kUnlimitedWidth = static_cast<std::size_t>(-1);

enum class Align { kLeft, kRight };

// What becomes of a column where the line is too long.
enum class Fit {
  kKeeps,
  kShrinks,  // truncated; a '+' then replaces its last character
  kYields,   // omitted, the leftmost first, where that does not suffice
};

struct Column {
  std::string title;
  Align align = Align::kRight;
  Fit fit = Fit::kKeeps;
};

// "1 block", "2 blocks".
std::string counted(std::uint64_t count, const std::string &one, const std::string &many);

// The titles, then a line for each row, none longer than `width`. Cells are printed as config::printable has them, so
// that no name sends control characters to a terminal.
// REQUIRES: each row has as many cells as there are columns.
std::vector<std::string> table_lines(std::vector<Column> columns, std::vector<std::vector<std::string>> rows,
                                     std::size_t width);

}  // namespace ration::cli
