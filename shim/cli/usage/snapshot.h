// A look at the groups of this machine, as the settings say where they are. Layer: cli. Threads: any.
// Looking also removes what dead processes left (ledger/group_view.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

// The folder that the environment names; says what is wrong with it. Empty: it cannot be used as it is written.
std::string state_folder_here();

Usage look_into(const std::string &state_folder);

// Of this process, as the ledger writes it down for its members. 0: not known here.
std::uint64_t own_pid_namespace();

// The two tables on stdout, or a line on stderr where there is nothing to show. False: they could not be written.
bool print_tables(const Usage &usage, const std::string &state_folder);

// A line on stderr for each problem that `said` does not hold yet.
void log_problems(const Usage &usage, std::vector<std::string> &said);

}  // namespace ration::cli
