// The device rows of a snapshot, built from its other rows and NVML. Layer: cli. Threads: values, pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/run/device_figures.h"
#include "cli/usage/process_rows.h"

namespace ration::cli {

// Makes a row for each device that appears in a process row or a group row. Leaves out NVML's figures.
void make_device_rows(Usage &usage);

// `indexes`: the indexes of the machine's devices, by UUID.
void number_devices(Usage &usage, const std::map<std::string, int> &indexes);

// Adds NVML's figures to the rows, and adds rows for devices of the machine that no process uses.
void add_figures(Usage &usage, const std::vector<DeviceFigures> &figures);

// For a table: for each device whose used memory NVML reports, appends a row to the processes. The row shows the memory
// held on that device outside Ration.
void add_rows_of_others(Usage &usage);

}  // namespace ration::cli
