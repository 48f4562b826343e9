// One screen of `ration top`, as lines of text with styles. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"
#include "cli/usage/top_state.h"

namespace ration::cli {

enum class Style { kTitles, kSorted, kCursor, kKeys, kUsed, kReserved, kOthers, kHistory, kWarning, kStrong };

struct Frame {
  struct Span {
    std::size_t line = 0;
    std::size_t begin = 0, width = 0;  // in columns; cut off at the screen's edge
    Style style = Style::kStrong;
  };

  std::vector<std::string> lines;  // one for each line of the screen, none wider than the screen
  std::vector<Span> spans;         // later spans override earlier ones
  RowOfPart all_rows{};            // the number of rows of each part; 0 if the frame has none
  RowOfPart first_rows{};          // for each part, the first row that is shown
  RowOfPart shown_rows{};          // for each part, the number of rows that are shown
  TopTarget chosen{};              // the row under the cursor
};

// The frame shows totals, devices, groups if they fit, processes, and the keys in the last line. The smallest screen is
// 1 x 1. If not all rows of a part fit, the line above them ends with the numbers of the rows shown, such as "4-9/12",
// and with '*' if Tab has chosen this part for the arrow keys.
Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width);

// Adjusts the state to the rows that the frame shows, so that after a key was pressed too often at the end of a list,
// the opposite key acts at once. A page has as many rows as are shown, and keys act on the row that the frame marks.
void keep_on_screen(const Frame &frame, TopState &state);

}  // namespace ration::cli
