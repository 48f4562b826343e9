// Tables and sentences that fit a given width, and counts such as "2 blocks". Layer: cli. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/base/text_width.h"

namespace ration::cli {

inline constexpr std::size_t kUnlimitedWidth = static_cast<std::size_t>(-1);
// The width of stdout's terminal. Unlimited if stdout is not a terminal, because a file or a program needs whole names.
std::size_t output_width();
// The value of the environment variable COLUMNS, if it is a positive number.
std::optional<std::size_t> columns_asked();

enum class Align { kLeft, kRight };

// How a column changes if the line is too long.
enum class Fit {
  kKeeps,
  kShrinks,            // it is truncated, with a '+' as its last character
  kYields,             // it is omitted if shrinking the others is not enough; lower ranks are omitted first
  kShrinksThenYields,  // both
};

struct Column {
  std::string title;
  Align align = Align::kRight;
  Fit fit = Fit::kKeeps;
  int rank = 0;           // of columns with the same rank, the leftmost is omitted first
  std::size_t least = 4;  // the width below which it does not shrink; 4 if nothing else makes the line fit
};

// "1 block", "2 blocks".
std::string counted(std::uint64_t count, const std::string &one, const std::string &many);

// Breaks `text` into lines at blanks, so that no line is longer than `width` (in characters, indent included). A longer
// word gets its own line. The first line begins with `first`, the others with as many blanks. REQUIRES: `text` has no
// control characters (config::printable).
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::string_view first = {});

// Wraps the lines that are longer than `width` in the same way; continuation lines are indented by two more blanks.
std::vector<std::string> fitting(const std::vector<std::string> &lines, std::size_t width);

struct Table {
  struct Place {
    std::string title;
    std::size_t begin = 0, width = 0;  // in terminal columns, within the line's width
  };
  std::vector<std::string> lines;
  std::vector<Place> columns;  // only the columns shown
};

// A line with the titles, then one line for each row, none longer than `width`. Cells are made printable
// (config::printable), so that no name sends control characters to a terminal.
// REQUIRES: each row has as many cells as there are columns.
Table table_of(std::vector<Column> columns, std::vector<std::vector<std::string>> rows, std::size_t width);
std::vector<std::string> table_lines(std::vector<Column> columns, std::vector<std::vector<std::string>> rows,
                                     std::size_t width);

}  // namespace ration::cli
