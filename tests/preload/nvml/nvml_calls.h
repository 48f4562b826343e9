// The NVML functions of monitor.cc, found by a direct link (linked_nvml.cc) or opened at run time (opened_nvml.cc).
#pragma once

#include <nvml.h>

namespace monitor {

struct Nvml {
  decltype(&::nvmlInit_v2) init;
  decltype(&::nvmlShutdown) shutdown;
  decltype(&::nvmlDeviceGetHandleByIndex_v2) by_index;
  decltype(&::nvmlDeviceGetHandleByUUID) by_uuid;
  decltype(&::nvmlDeviceGetHandleByPciBusId_v2) by_pci;
  decltype(&::nvmlDeviceGetUUID) uuid;
  decltype(&::nvmlDeviceGetPciInfo_v3) pci;
  decltype(&::nvmlDeviceGetMemoryInfo) memory;
  decltype(&::nvmlDeviceGetMemoryInfo_v2) memory_v2;
  decltype(&::nvmlDeviceGetComputeRunningProcesses_v3) processes;
};

// False: NVML is not available.
bool find_nvml(Nvml &nvml);

}  // namespace monitor
