// One screen of `ration top` as lines of text with styles. Layer: cli. Threads: values, pure functions.
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
    std::size_t begin = 0, width = 0;  // in columns; the width may reach beyond the line: all of the rest
    Style style = Style::kStrong;
  };

  std::vector<std::string> lines;  // one for each line of the screen, none wider
  std::vector<Span> spans;         // later ones lie over earlier ones
  RowOfPart all_rows{};            // of each part; 0 where the frame has none
  RowOfPart first_rows{};          // that are shown
  RowOfPart shown_rows{};          // how many are
  TopTarget chosen{};              // by the cursor
};

// Totals, devices, groups where they fit, processes, and the keys in the last line. The smallest screen is 1 x 1.
// Where not all rows fit, the line above them ends in those that are shown, "4-9/12", with a '*' where Tab has chosen
// this part for the arrow keys.
Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width);

// So that a key which scrolls back acts at once, however often the one before was pressed, a page is what is shown, and
// a key acts on the row that the frame marks.
void keep_on_screen(const Frame &frame, TopState &state);

}  // namespace ration::cli
