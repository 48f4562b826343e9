// A snapshot of the groups on this machine, read from the state folder of the settings or from those of all users.
// Layer: cli. Threads: one. Taking one also returns the memory of dead processes (ledger/group_view.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/device_figures.h"
#include "cli/usage/process_rows.h"

namespace ration::cli {

// The folder that the environment names; logs what is wrong with its value. Empty: the value cannot be used.
std::string state_folder();

struct StateFolders {
  std::string own = {};
  bool of_all_users = false;  // those in /dev/shm, too
  bool is_named = false;      // the own one, by a setting
};
StateFolders state_folders(bool of_all_users);  // the own one is that of state_folder()

// "looked in FOLDER", or that a folder which a setting names is not there.
std::string where_looked(const StateFolders &folders);

// `nvml`: asked for what the devices hold.
Usage take_snapshot(const StateFolders &folders, NvmlProcess &nvml);

// Of this process, as the ledger records it for its members. 0: unknown.
std::uint64_t own_pid_namespace();

// The tables on stdout, on a terminal without UTF-8 in printable ASCII; a line on stderr where no process and no group
// is in them. False: stdout could not be written.
bool print_tables(Usage usage, const StateFolders &folders);

// Logs each problem that `logged` does not hold, and adds it there.
void log_problems(const Usage &usage, std::vector<std::string> &logged);

}  // namespace ration::cli
