// Finds the memory that a process or run waits for, and who holds it. Layer: cli. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

struct Scarcity {
  // The label of the group whose limit leaves too little room; empty: the device itself has too little memory.
  std::string group;
  bool is_queue = false;                    // it waits for earlier runs, which are listed in `holders`
  std::vector<const ProcessRow *> holders;  // the largest first
  std::uint64_t others = 0;                 // the memory held on the device outside Ration
};
// REQUIRES: the row is in the snapshot and is waiting.
Scarcity scarcity_for(const Usage &usage, const ProcessRow &waiting);

// A sentence for each row that waits.
std::vector<std::string> waiting_lines(const Usage &usage);

}  // namespace ration::cli
