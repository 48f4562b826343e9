// Corrects NVML's figures of a device's memory to the amounts that this process can have.
// Layer: runtime. Threads: any. Called from: the hooks of NVML, before and after the first use of CUDA.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/devices/memory_figures.h"
#include "runtime/visible_devices.h"

namespace ration::runtime {

using ListGpus = std::function<std::vector<ListedGpu>()>;  // in the order of their PCI bus ids

// Corrects `memory` for the device with `uuid` (empty: it has none). False: NVML's answer should be left as it is.
// Until the driver is initialised, uses the settings, environment and devices as they were at the process's first
// query. Has no side effects: opens no log, joins no group, does not load the driver.
bool present_memory(const std::string &uuid, const ListGpus &list, policy::MemoryFigures &memory);

}  // namespace ration::runtime
