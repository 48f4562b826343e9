// A snapshot of the groups on this machine, read from the configured state folder, or from the folders of all users.
// Layer: cli. Threads: one. Taking a snapshot also reclaims the memory of dead processes (ledger/group_view.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/device_figures.h"
#include "cli/usage/process_rows.h"

namespace ration::cli {

// The folder that the environment names. If the value cannot be used, logs the reason and returns "".
std::string state_folder();

struct StateFolders {
  std::string own = {};
  bool of_all_users = false;  // folders in /dev/shm are read as well
  bool is_named = false;      // a setting names `own`
};
StateFolders state_folders(bool of_all_users);  // `own` is the result of state_folder()

// "looked in FOLDER", or words that say that the configured folder does not exist.
std::string where_looked(const StateFolders &folders);

// Asks `nvml` about the memory of the devices.
Usage take_snapshot(const StateFolders &folders, NvmlProcess &nvml);

// The ID of this process's PID namespace, as the ledger records it for its members. 0: unknown.
std::uint64_t own_pid_namespace();

// Prints the tables to stdout, in printable ASCII if stdout is a terminal without UTF-8. If the tables have no process
// and no group, prints a line to stderr. Returns false if stdout could not be written.
bool print_tables(Usage usage, const StateFolders &folders);

// Logs each problem that is not yet in `logged`, and adds it to `logged`.
void log_problems(const Usage &usage, std::vector<std::string> &logged);

}  // namespace ration::cli
