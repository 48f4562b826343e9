// The devices of a snapshot: what its rows say of them, and what NVML says. Layer: cli. Threads: values, pure
// functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/run/device_figures.h"
#include "cli/usage/process_rows.h"

namespace ration::cli {

// Those that have a row of a process or of a group, and nothing else.
void make_device_rows(Usage &usage);

// `indexes`: those of the machine's devices, by UUID.
void number_devices(Usage &usage, const std::map<std::string, int> &indexes);

// Also adds devices of the machine that no process uses.
void add_figures(Usage &usage, const std::vector<DeviceFigures> &figures);

// For a table: behind the processes a row for each device of which NVML says what is used, with what is held there
// outside Ration.
void add_rows_of_others(Usage &usage);

}  // namespace ration::cli
