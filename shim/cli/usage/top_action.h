// The actions of `ration top` on a row: setting a limit, sending a signal. Each asks for confirmation. Layer: cli.
// Threads: values; only one carries out actions.
#pragma once

#include <cstdint>
#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// A process or a group, copied from its row when it was chosen: rows may move between two snapshots.
struct TopTarget {
  std::string name;            // shown in the question; empty: there is no row
  std::string word;            // the name that `ration set` takes for it
  std::uint64_t identity = 0;  // the process's identity; 0: it is a group
};
TopTarget target_of(const ProcessRow &row);
TopTarget target_of(const GroupRow &row);

struct TopQuestion {
  TopTarget target;
  bool is_signal = false;  // false: it sets a limit
  std::string text = {};   // the user's input: the size, or the signal's name or number
  bool is_sure = false;    // the text is complete; only the answer y is missing
};
std::string line_of(const TopQuestion &question);

// The number of the signal with this name or number; 0 if there is none.
int signal_called(const std::string &text);

// Returns the line that reports the result. `usage`: the latest snapshot, in which the process is looked up again.
std::string carry_out(const TopQuestion &question, const Usage &usage);

}  // namespace ration::cli
