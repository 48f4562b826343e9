// One screen of `ration top` as lines of text with styles. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"
#include "cli/usage/top_state.h"

namespace ration::cli {

enum class Style { kTitles, kSorted, kKeys, kUsed, kReserved, kHistory, kWarning, kStrong };

struct Frame {
  struct Span {
    std::size_t line = 0;
    std::size_t begin = 0, width = 0;  // in characters; the width may reach beyond the line: all of the rest
    Style style = Style::kStrong;
  };

  std::vector<std::string> lines;  // one for each line of the screen, none wider
  std::vector<Span> spans;         // later ones lie over earlier ones
  std::size_t last_first_row = 0;  // with which the last process is shown
};

// Totals, devices, groups where they fit, processes, and the keys in the last line. The smallest screen is 1 x 1.
Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width);

}  // namespace ration::cli
