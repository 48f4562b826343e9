// One screen of `ration top` as lines of text, and its keys. Layer: cli. Threads: values, pure functions.
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

// Other keys are ignored.
void handle_key(int key, TopState &state);

struct Frame {
  std::vector<std::string> lines;  // one for each line of the screen, none wider, printable ASCII
  std::size_t title_line = kNone;  // of the process table; kNone: the table does not fit

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

// A title, the processes, the groups where they fit, the keys in the last line. The smallest screen is 1 x 1.
Frame frame_of(Usage usage, const TopState &state, std::size_t height, std::size_t width);

}  // namespace ration::cli
