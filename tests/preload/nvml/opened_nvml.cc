#include <dlfcn.h>
#include <stdio.h>

#include "nvml_calls.h"

namespace monitor {
namespace {

template <class Function>
bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool find_nvml(Nvml &nvml) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const bool found =
      library != nullptr && find(library, "nvmlInit_v2", nvml.init) && find(library, "nvmlShutdown", nvml.shutdown) &&
      find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.by_index) &&
      find(library, "nvmlDeviceGetHandleByUUID", nvml.by_uuid) &&
      find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.by_pci) && find(library, "nvmlDeviceGetUUID", nvml.uuid) &&
      find(library, "nvmlDeviceGetPciInfo_v3", nvml.pci) && find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
      find(library, "nvmlDeviceGetMemoryInfo_v2", nvml.memory_v2) &&
      find(library, "nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes) &&
      find(library, "nvmlDeviceGetComputeRunningProcesses_v2", nvml.newer_lists[0]) &&
      find(library, "nvmlDeviceGetGraphicsRunningProcesses_v2", nvml.newer_lists[1]) &&
      find(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", nvml.newer_lists[2]) &&
      find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v2", nvml.newer_lists[3]) &&
      find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", nvml.newer_lists[4]) &&
      find(library, "nvmlDeviceGetComputeRunningProcesses", nvml.first_lists[0]) &&
      find(library, "nvmlDeviceGetGraphicsRunningProcesses", nvml.first_lists[1]) &&
      find(library, "nvmlDeviceGetMPSComputeRunningProcesses", nvml.first_lists[2]) &&
      find(library, "nvmlDeviceGetRunningProcessDetailList", nvml.details) &&
      find(library, "nvmlDeviceGetAccountingStats", nvml.account);
  // A successful look-up leaves no error, whatever libraries Ration searched.
  if (const char *error = dlerror()) {
    dprintf(1, "dlerror: %s\n", error);
  }
  return found;
}

}  // namespace monitor
