// What a process or a run waits for, and who holds it. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

struct Scarcity {
  std::string group;                        // its label, where its limit leaves too little; empty: the device does
  bool is_queue = false;                    // runs that came before wait there: they are the holders
  std::vector<const ProcessRow *> holders;  // the largest first
  std::uint64_t others = 0;                 // held on the device outside Ration
};
// REQUIRES: the row is one of the snapshot's, and waits.
Scarcity scarcity_for(const Usage &usage, const ProcessRow &waiting);

// A sentence for each row that waits.
std::vector<std::string> waiting_lines(const Usage &usage);

}  // namespace ration::cli
