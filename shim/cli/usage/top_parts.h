// Divides the lines of a screen of `ration top` among its parts. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "cli/usage/top_state.h"

namespace ration::cli {

// The number of lines of each part, including title lines.
struct TopParts {
  std::size_t problems = 0, devices = 0, groups = 0, processes = 0;
};

// No part gets more than it wants. The scrolled part gets most; lines that a part does not need go to others.
TopParts parts_for(const TopParts &wanted, std::size_t lines, TopPart scrolled);

// The rows of a part that are shown if the part has `all` rows and `room` of them fit.
struct ShownRows {
  std::size_t first = 0, count = 0, all = 0;
  // For example "4-9/12"; empty if all rows are shown.
  [[nodiscard]] std::string text() const;
};
ShownRows rows_shown(std::size_t all, std::size_t room, std::size_t first);

// Returns the line with `text` right-aligned at `width`, or only the line if `text` is empty.
std::string with_end(const std::string &line, const std::string &text, std::size_t width);

}  // namespace ration::cli
