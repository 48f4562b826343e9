// The first line of `ration top` (totals) and the last (keys). Layer: cli. Threads: values, pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/usage/process_rows.h"
#include "cli/usage/top_state.h"

namespace ration::cli {

struct TopTotals {
  std::size_t processes = 0;
  std::uint64_t used = 0, reserved = 0;
};
TopTotals totals_of_rows(const Usage &usage);  // the totals of all processes in the snapshot

// The longest title that fits. `shown`: totals of the rows that pass the filter; `usage`: all rows.
std::string title_of(const TopTotals &shown, const Usage &usage, const TopState &state, std::size_t width);

// The last line, with as many keys as fit. `shown_help`: the lines of the help that are visible, such as 4-9/12; empty
// if the help is closed or fits.
std::string key_line(const TopState &state, const std::string &shown_help, std::size_t width);

}  // namespace ration::cli
