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
  decltype(&::nvmlDeviceGetComputeRunningProcesses_v3) newer_lists[5];  // v2: computing; v2, v3: drawing; v2, v3: MPS
  decltype(&::nvmlDeviceGetComputeRunningProcesses) first_lists[3];     // computing, drawing, MPS
  decltype(&::nvmlDeviceGetRunningProcessDetailList) details;
  decltype(&::nvmlDeviceGetAccountingStats) account;
};

// Returns false if NVML is not available.
bool find_nvml(Nvml &nvml);

}  // namespace monitor
