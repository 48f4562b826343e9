// A device's memory, processes and sensors, as NVML reports them. Layer: nvml_library.h. Threads: any.
#include "tests/simcuda/nvml_library.h"
#include "tests/simcuda/settings.h"

namespace simcuda {
namespace {

constexpr unsigned kNoInstance = ~0u;  // of a device that is not divided (NVML's manual, nvmlProcessInfo_t)

nvmlProcessInfo_v1_t as(nvmlProcessInfo_v1_t, unsigned pid, unsigned long long bytes) {
  return {pid, bytes};
}

nvmlProcessInfo_t as(nvmlProcessInfo_t, unsigned pid, unsigned long long bytes) {
  return {pid, bytes, kNoInstance, kNoInstance};
}

template <class Info>
nvmlReturn_t report_holders(nvmlDevice_t device, unsigned *count, Info *infos) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_device(device, [&](Machine &seen, unsigned index) {
    if (!settings().nvml_processes) return NVML_ERROR_NOT_SUPPORTED;
    const auto holders = seen.holders(index);
    const unsigned room = infos == nullptr ? 0 : *count;
    *count = static_cast<unsigned>(holders.size());
    if (holders.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (std::size_t i = 0; i < holders.size(); ++i) infos[i] = as(Info{}, holders[i].pid, holders[i].bytes);
    return NVML_SUCCESS;
  });
}

// All processes compute: none draws, and there is no MPS, unless a test asks for it.
template <class Info>
nvmlReturn_t report_others(nvmlDevice_t device, unsigned *count, Info *infos) {
  if (settings().nvml_all_lists) return report_holders(device, count, infos);
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_device(device, [&](Machine &, unsigned) {
    if (!settings().nvml_processes) return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
  });
}

}  // namespace
}  // namespace simcuda

#pragma GCC visibility push(default)

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &seen, unsigned index) {
    if (simcuda::settings().integrated) return NVML_ERROR_NOT_SUPPORTED;
    const unsigned long long bytes = seen.device(index).bytes, used = seen.used(index);
    const unsigned long long reserved = simcuda::settings().nvml_reserved;
    *memory = {bytes + reserved, bytes - used, used + reserved};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return simcuda::with_device(device, [&](simcuda::Machine &seen, unsigned index) {
    if (simcuda::settings().integrated) return NVML_ERROR_NOT_SUPPORTED;
    const unsigned long long bytes = seen.device(index).bytes, used = seen.used(index);
    const unsigned long long reserved = simcuda::settings().nvml_reserved;
    *memory = {nvmlMemory_v2, bytes + reserved, reserved, bytes - used, used};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
  return simcuda::with_device(device, [&](simcuda::Machine &, unsigned) {
    const int percent = simcuda::settings().nvml_utilisation;
    if (percent < 0) return NVML_ERROR_NOT_SUPPORTED;
    if (utilization == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *utilization = {static_cast<unsigned>(percent), 0};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp) {
  return simcuda::with_device(device, [&](simcuda::Machine &, unsigned) {
    const int degrees = simcuda::settings().nvml_temperature;
    if (degrees < 0) return NVML_ERROR_NOT_SUPPORTED;
    if (temp == nullptr || sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    *temp = static_cast<unsigned>(degrees);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                  nvmlProcessInfo_v1_t *infos) {
  return simcuda::report_holders(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                     nvmlProcessInfo_t *infos) {
  return simcuda::report_holders(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                     nvmlProcessInfo_t *infos) {
  return simcuda::report_holders(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                   nvmlProcessInfo_v1_t *infos) {
  return simcuda::report_others(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                      nvmlProcessInfo_t *infos) {
  return simcuda::report_others(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                      nvmlProcessInfo_t *infos) {
  return simcuda::report_others(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                     nvmlProcessInfo_v1_t *infos) {
  return simcuda::report_others(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *infoCount,
                                                        nvmlProcessInfo_t *infos) {
  return simcuda::report_others(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                        nvmlProcessInfo_t *infos) {
  return simcuda::report_others(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *plist) {
  if (plist == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (plist->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  constexpr unsigned kCompute = 0;
  nvmlProcessInfo_t infos[64] = {};
  unsigned count = 64;
  const nvmlReturn_t result = plist->mode == kCompute ? simcuda::report_holders(device, &count, infos)
                                                      : simcuda::report_others(device, &count, infos);
  const unsigned room = plist->procArray == nullptr ? 0 : plist->numProcArrayEntries;
  if (result != NVML_SUCCESS) return result;
  plist->numProcArrayEntries = count;
  if (count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < count; ++i) {
    plist->procArray[i] = {infos[i].pid, infos[i].usedGpuMemory, infos[i].gpuInstanceId, infos[i].computeInstanceId,
                           infos[i].usedGpuMemory};
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats) {
  if (stats == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &seen, unsigned index) {
    if (!simcuda::settings().nvml_all_lists) return NVML_ERROR_NOT_SUPPORTED;
    for (const auto &holder : seen.holders(index)) {
      if (holder.pid != pid) continue;
      *stats = {};
      stats->maxMemoryUsage = holder.bytes;
      stats->isRunning = 1;
      return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
  });
}

#pragma GCC visibility pop
