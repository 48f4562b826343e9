// The line for each device in `ration top`: name, bar, figures, history. Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/usage/frame_draft.h"
#include "cli/usage/process_rows.h"
#include "cli/usage/top_state.h"

namespace ration::cli {

class DeviceLines {
 public:
  // REQUIRES: the usage and the state outlive this object.
  DeviceLines(const Usage &usage, const TopState &state, std::size_t width);

  void add(FrameDraft &draft, std::size_t number) const;  // `number`: the device's index in the usage

 private:
  void write_figures(int brevity);                             // 0: writes all figures in full
  [[nodiscard]] std::size_t room_in(std::size_t width) const;  // the columns left after name and figures

  const Usage &usage_;
  const TopState &state_;
  std::vector<std::string> names_, figures_;
  std::size_t name_width_ = 0, figures_width_ = 0;
  std::size_t bar_width_ = 0, history_width_ = 0;  // 0: no room
};

}  // namespace ration::cli
