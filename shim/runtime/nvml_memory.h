// NVML's figures of a device's memory, corrected to what this process can have.
// Layer: runtime. Threads: any. Called from: the hooks of NVML, before and after the first use of CUDA.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/devices/memory_figures.h"
#include "runtime/visible_devices.h"

namespace ration::runtime {

using ListGpus = std::function<std::vector<ListedGpu>()>;  // in the order of their PCI bus ids

// Of the device with `uuid` (empty: it has none). False: leave NVML's answer as it is. Before the driver is
// initialised, settings, environment and machine are those of the process's first such query.
// Has no side effect: opens no log, joins no group, does not load the driver.
bool present_memory(const std::string &uuid, const ListGpus &list, policy::MemoryFigures &memory);

}  // namespace ration::runtime
