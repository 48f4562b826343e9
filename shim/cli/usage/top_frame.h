// One screen of `ration top` as lines of text, and what its keys do. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

struct TopState {
  SortKey sorted_by = SortKey::kReserved;
  bool paused = false;
  bool ended = false;
};

// Any other key does nothing.
void press(int key, TopState &state);

struct Frame {
  std::vector<std::string> lines;  // as many as the screen has, none wider than it, printable ASCII
  std::size_t title_line = kNone;  // the titles of the process table; kNone: there is no room for it

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

// A title, the processes, the groups where there is room, the keys in the last line. A screen may be 1 x 1.
Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width);

}  // namespace ration::cli
