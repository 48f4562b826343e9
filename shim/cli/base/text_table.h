// Tables and sentences that fit a width, and counts as words. Layer: cli. Threads: pure functions.
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
// Of stdout's terminal. Unlimited where it is none: a file or a program needs whole names.
std::size_t output_width();
// The variable COLUMNS, where it is a number.
std::optional<std::size_t> columns_asked();

enum class Align { kLeft, kRight };

// What becomes of a column where the line is too long.
enum class Fit {
  kKeeps,
  kShrinks,            // truncated; a '+' then replaces its end
  kYields,             // omitted where that does not suffice, those of the lowest rank first
  kShrinksThenYields,  // both
};

struct Column {
  std::string title;
  Align align = Align::kRight;
  Fit fit = Fit::kKeeps;
  int rank = 0;           // of equals the leftmost yields first
  std::size_t least = 4;  // columns of the terminal that one which shrinks keeps, before others yield
};

// "1 block", "2 blocks".
std::string counted(std::uint64_t count, const std::string &one, const std::string &many);

// Lines of `text`, broken at blanks, none longer than `width` (characters, indents included) unless a word is: such a
// word has a line of its own. The first line begins with `first`, the others with as many blanks. Of readable() text.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::string_view first = {});

// Each of `lines`, broken likewise where it is longer; what continues one is two blanks further in than it.
std::vector<std::string> fitting(const std::vector<std::string> &lines, std::size_t width);

struct Table {
  struct Place {
    std::string title;
    std::size_t begin = 0, width = 0;  // in columns of the terminal; at most the line's width
  };
  std::vector<std::string> lines;
  std::vector<Place> columns;  // those that are shown
};

// The titles, then a line for each row, none longer than `width`. Cells are printed as readable() has them, so that no
// name sends control characters to a terminal.
// REQUIRES: each row has as many cells as there are columns.
Table table_of(std::vector<Column> columns, std::vector<std::vector<std::string>> rows, std::size_t width);
std::vector<std::string> table_lines(std::vector<Column> columns, std::vector<std::vector<std::string>> rows,
                                     std::size_t width);

}  // namespace ration::cli
