// Lines of text in columns, held to a width. Layer: cli. Threads: values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ration::cli {

inline constexpr std::size_t kAnyWidth = static_cast<std::size_t>(-1);

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
  bool gives_way = false;  // is cut first where the line is too long, with a '+' as its last character
};

// Printable ASCII on one line, whatever `text` holds: nothing that a terminal would obey. Not cut.
std::string plain(std::string_view text);

// The titles, then a line for each row, none longer than `width`. Cells go through `plain`.
// REQUIRES: each row has as many cells as there are columns.
std::vector<std::string> table_lines(const std::vector<Column> &columns,
                                     const std::vector<std::vector<std::string>> &rows, std::size_t width);

}  // namespace ration::cli
