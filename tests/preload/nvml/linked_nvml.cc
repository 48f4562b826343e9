#include "nvml_calls.h"

namespace monitor {

bool find_nvml(Nvml &nvml) {
  nvml = {&nvmlInit_v2,
          &nvmlShutdown,
          &nvmlDeviceGetHandleByIndex_v2,
          &nvmlDeviceGetHandleByUUID,
          &nvmlDeviceGetHandleByPciBusId_v2,
          &nvmlDeviceGetUUID,
          &nvmlDeviceGetPciInfo_v3,
          &nvmlDeviceGetMemoryInfo,
          &nvmlDeviceGetMemoryInfo_v2,
          &nvmlDeviceGetComputeRunningProcesses_v3,
          {&nvmlDeviceGetComputeRunningProcesses_v2, &nvmlDeviceGetGraphicsRunningProcesses_v2,
           &nvmlDeviceGetGraphicsRunningProcesses_v3, &nvmlDeviceGetMPSComputeRunningProcesses_v2,
           &nvmlDeviceGetMPSComputeRunningProcesses_v3},
          {&nvmlDeviceGetComputeRunningProcesses, &nvmlDeviceGetGraphicsRunningProcesses,
           &nvmlDeviceGetMPSComputeRunningProcesses},
          &nvmlDeviceGetRunningProcessDetailList,
          &nvmlDeviceGetAccountingStats};
  return true;
}

}  // namespace monitor
