// libnvidia-ml.so.1 of the simulated machine: all its devices, regardless of CUDA_VISIBLE_DEVICES. Here: the library
// itself, and what a device is. Layer: nvml_library.h. Threads: any.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/simcuda/nvml_library.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/version.h"
#include "tests/simcuda/visible_devices.h"

namespace simcuda {
namespace {

constexpr char kName[] = "simcuda GPU";
constexpr char kDisplayDriver[] = "580.00";
constexpr char kLibrary[] = "13.580.00";

// NVML does not guarantee an index order; bus ids follow the order of the devices (cuDeviceGetPCIBusId).
unsigned device_at(const Machine &seen, unsigned index) {
  return settings().nvml_reversed ? seen.devices() - 1 - index : index;
}

nvmlPciInfo_t pci_of(unsigned device) {
  nvmlPciInfo_t pci{};
  pci.bus = (device + 1) & 0xff;
  std::snprintf(pci.busIdLegacy, sizeof(pci.busIdLegacy), "0000:%02X:00.0", pci.bus);
  std::snprintf(pci.busId, sizeof(pci.busId), "00000000:%02X:00.0", pci.bus);
  return pci;
}

// Older versions of the structure are beginnings of the newest.
nvmlReturn_t begin_of_pci(nvmlDevice_t device, nvmlPciInfo_t *to, std::size_t bytes) {
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_device(device, [&](Machine &, unsigned index) {
    const nvmlPciInfo_t pci = pci_of(index);
    std::memcpy(to, &pci, bytes);
    return NVML_SUCCESS;
  });
}

}  // namespace
}  // namespace simcuda

#pragma GCC visibility push(default)

nvmlReturn_t nvmlInit(void) {
  return nvmlInit_v2();
}

nvmlReturn_t nvmlInit_v2(void) {
  auto &state = simcuda::library();
  const std::lock_guard<std::mutex> guard(state.mutex);
  if (state.machine == nullptr) {
    state.machine = simcuda::Machine::watch(simcuda::settings());
    if (state.machine == nullptr) return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  ++state.users;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int /*flags*/) {
  return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void) {
  auto &state = simcuda::library();
  const std::lock_guard<std::mutex> guard(state.mutex);
  if (state.users == 0) return NVML_ERROR_UNINITIALIZED;
  --state.users;
  return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_ALREADY_INITIALIZED:
      return "Already Initialized";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument Version Mismatch";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  if (simcuda::machine() == nullptr) return NVML_ERROR_UNINITIALIZED;
  return simcuda::copy_text(simcuda::kDisplayDriver, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
  if (simcuda::machine() == nullptr) return NVML_ERROR_UNINITIALIZED;
  return simcuda::copy_text(simcuda::kLibrary, version, length);
}

// H100, H200, driver 580.159: refused before nvmlInit.
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion) {
  if (simcuda::machine() == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (cudaDriverVersion == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *cudaDriverVersion = simcuda::kDriverVersion;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion) {
  return nvmlSystemGetCudaDriverVersion(cudaDriverVersion);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *deviceCount) {
  return nvmlDeviceGetCount_v2(deviceCount);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount) {
  simcuda::Machine *const seen = simcuda::machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (deviceCount == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *deviceCount = seen->devices();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  simcuda::Machine *const seen = simcuda::machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= seen->devices()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = simcuda::handle_at(simcuda::device_at(*seen, index));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  simcuda::Machine *const seen = simcuda::machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < seen->devices(); ++i) {
    if (simcuda::uuid_text(seen->device(i).uuid) != uuid) continue;
    *device = simcuda::handle_at(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pciBusId, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByPciBusId_v2(pciBusId, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device) {
  simcuda::Machine *const seen = simcuda::machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (pciBusId == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < seen->devices(); ++i) {
    const nvmlPciInfo_t pci = simcuda::pci_of(i);
    if (std::strcmp(pciBusId, pci.busId) != 0 && std::strcmp(pciBusId, pci.busIdLegacy) != 0) continue;
    *device = simcuda::handle_at(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &seen, unsigned place) {
    *index = simcuda::device_at(seen, place);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber) {
  if (minorNumber == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &, unsigned place) {
    *minorNumber = place;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice) {
  if (isMigDevice == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &, unsigned) {
    *isMigDevice = 0;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  return simcuda::begin_of_pci(device, pci, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  return simcuda::begin_of_pci(device, pci, offsetof(nvmlPciInfo_t, busId));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  return simcuda::begin_of_pci(device, pci, sizeof(*pci));
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
  return simcuda::with_device(device, [&](simcuda::Machine &, unsigned) {  //
    return simcuda::copy_text(simcuda::kName, name, length);
  });
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
  return simcuda::with_device(device, [&](simcuda::Machine &seen, unsigned index) {
    return simcuda::copy_text(simcuda::uuid_text(seen.device(index).uuid), uuid, length);
  });
}

#pragma GCC visibility pop
