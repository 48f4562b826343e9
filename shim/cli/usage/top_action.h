// The actions of `ration top` on a row: setting a limit, sending a signal. Each one asks for confirmation. Layer: cli.
// Threads: values; only one thread carries out actions.
#pragma once

#include <cstdint>
#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// A process or a group, copied from its row when it was chosen, because rows may move between snapshots.
struct TopTarget {
  std::string name;            // shown in the question; empty: there is no row
  std::string word;            // the word by which `ration set` names it
  std::uint64_t identity = 0;  // the process's identity; 0: the target is a group
};
TopTarget target_of(const ProcessRow &row);
TopTarget target_of(const GroupRow &row);

struct TopQuestion {
  TopTarget target;
  bool is_signal = false;  // false: the question is about a limit
  std::string text = {};   // what the user typed: a size, or a signal's name or number
  bool is_sure = false;    // the text is complete, and only the answer y is missing
};
std::string line_of(const TopQuestion &question);

// The number of the signal with this name or number; 0 if there is no such signal.
int signal_called(const std::string &text);

// Returns the line that reports the result. `usage`: the latest snapshot, in which the process is looked up again.
std::string carry_out(const TopQuestion &question, const Usage &usage);

}  // namespace ration::cli
