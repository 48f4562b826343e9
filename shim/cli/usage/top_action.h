// What `ration top` does to a row: sets a limit, sends a signal. First it asks. Layer: cli. Threads: values; one acts.
#pragma once

#include <cstdint>
#include <string>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// A process or a group, as the row was when it was chosen: rows move between two snapshots.
struct TopTarget {
  std::string name;            // for the question; empty: the row is none
  std::string word;            // for `ration set`
  std::uint64_t identity = 0;  // of a process; 0: a group
};
TopTarget target_of(const ProcessRow &row);
TopTarget target_of(const GroupRow &row);

struct TopQuestion {
  TopTarget target;
  bool is_signal = false;  // else a limit
  std::string text = {};   // that is typed: the size, or the signal's name or number
  bool is_sure = false;    // it only waits for y
};
std::string line_of(const TopQuestion &question);

// 0: there is none.
int signal_called(const std::string &text);

// Returns what to say of it. `usage`: the latest, by which a process is found again.
std::string carry_out(const TopQuestion &question, const Usage &usage);

}  // namespace ration::cli
