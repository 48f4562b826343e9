// Corrects NVML's figures for a device's memory to the amounts that this process can have.
// Layer: runtime. Threads: any. Called from: the hooks of NVML, before and after the first use of CUDA.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/devices/memory_figures.h"
#include "runtime/visible_devices.h"

namespace ration::runtime {

using ListGpus = std::function<std::vector<ListedGpu>()>;  // in the order of their PCI bus ids

// Corrects `memory` for the device with `uuid` (empty: it has none). Returns false if NVML's answer should not be
// changed. Until the driver is initialised, uses the settings, environment and devices as of the process's first query.
// Has no side effects: opens no log, joins no group, does not load the driver.
bool present_memory(const std::string &uuid, const ListGpus &list, policy::MemoryFigures &memory);

}  // namespace ration::runtime
