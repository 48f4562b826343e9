// A snapshot of the groups on this machine, read from the state folder of the settings or from those of all users.
// Layer: cli. Threads: one. Taking one also returns the memory of dead processes (ledger/group_view.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// The folder that the environment names; logs what is wrong with its value. Empty: the value cannot be used.
std::string state_folder();

struct StateFolders {
  std::string own = {};
  bool of_all_users = false;  // those in /dev/shm, too
};

Usage take_snapshot(const StateFolders &folders);

// Of this process, as the ledger records it for its members. 0: unknown.
std::uint64_t own_pid_namespace();

// The two tables on stdout, or a line on stderr where both are empty. False: stdout could not be written.
bool print_tables(const Usage &usage, const StateFolders &folders);

// Logs each problem that `logged` does not hold, and adds it there.
void log_problems(const Usage &usage, std::vector<std::string> &logged);

}  // namespace ration::cli
