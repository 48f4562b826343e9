// How the lines of a screen of `ration top` are shared out. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "cli/usage/top_state.h"

namespace ration::cli {

// Lines, those of titles among them.
struct TopParts {
  std::size_t problems = 0, devices = 0, groups = 0, processes = 0;
};

// Each part gets at most what it wants. The part that is scrolled gets most; what one does not need, the others have.
TopParts parts_for(const TopParts &wanted, std::size_t lines, TopPart scrolled);

// Which of `all` rows of a part are shown where there is room for `room`.
struct ShownRows {
  std::size_t first = 0, count = 0, all = 0;
  // "4-9/12"; empty where all are shown.
  [[nodiscard]] std::string text() const;
};
ShownRows rows_shown(std::size_t all, std::size_t room, std::size_t first);

// The line with the text at its end, where the width ends; without a text the line.
std::string with_end(const std::string &line, const std::string &text, std::size_t width);

}  // namespace ration::cli
