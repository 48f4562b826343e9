// libnvidia-ml.so.1 of the simulated machine: all its devices, regardless of CUDA_VISIBLE_DEVICES, and their holders.
// Layer: machine.h. Threads: any. Owns: its view of the machine, for ever.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/simcuda/include/nvml.h"
#include "tests/simcuda/machine.h"
#include "tests/simcuda/settings.h"
#include "tests/simcuda/visible_devices.h"

struct nvmlDevice_st {};

namespace simcuda {
namespace {

constexpr char kName[] = "simcuda GPU";
constexpr char kDriverVersion[] = "580.00";

struct Library {
  std::mutex mutex;
  unsigned users = 0;
  Machine *machine = nullptr;
};

Library &library() {
  static auto *const once = new Library;
  return *once;
}

nvmlDevice_st handles[kMostMachineDevices];

// A process alone on its machine keeps the account in its own libcuda.
Machine *private_machine() {
  void *driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = driver == nullptr ? nullptr : ::dlsym(driver, "simcuda_private_machine");
  void *page = symbol == nullptr ? nullptr : reinterpret_cast<void *(*)()>(symbol)();
  return page == nullptr ? nullptr : Machine::watch(page);
}

// Null: nvmlInit was not called. A private machine's first driver may load later, so every call looks again.
Machine *machine() {
  Library &state = library();
  const std::lock_guard<std::mutex> guard(state.mutex);
  if (state.users == 0) return nullptr;
  if (settings().machine.empty()) {
    static Machine *found = nullptr;
    if (found == nullptr) found = private_machine();
    if (found != nullptr) return found;
  }
  return state.machine;
}

nvmlReturn_t copy_text(const std::string &text, char *to, unsigned length) {
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

template <class Body>
nvmlReturn_t with_device(nvmlDevice_t device, Body body) {
  Machine *const seen = machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  for (unsigned i = 0; i < seen->devices(); ++i) {
    if (device == &handles[i]) return body(*seen, i);
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

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

template <class Info>
nvmlReturn_t report_holders(nvmlDevice_t device, unsigned *count, Info *infos) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_device(device, [&](Machine &seen, unsigned index) {
    const auto holders = seen.holders(index);
    const unsigned room = infos == nullptr ? 0 : *count;
    *count = static_cast<unsigned>(holders.size());
    if (holders.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      infos[i] = {};
      infos[i].pid = holders[i].pid;
      infos[i].usedGpuMemory = holders[i].bytes;
    }
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
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  if (simcuda::machine() == nullptr) return NVML_ERROR_UNINITIALIZED;
  return simcuda::copy_text(simcuda::kDriverVersion, version, length);
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
  *device = &simcuda::handles[simcuda::device_at(*seen, index)];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  simcuda::Machine *const seen = simcuda::machine();
  if (seen == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < seen->devices(); ++i) {
    if (simcuda::uuid_text(seen->device(i).uuid) != uuid) continue;
    *device = &simcuda::handles[i];
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
    *device = &simcuda::handles[i];
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

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &, unsigned index) {
    *pci = simcuda::pci_of(index);
    return NVML_SUCCESS;
  });
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

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return simcuda::with_device(device, [&](simcuda::Machine &seen, unsigned index) {
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
    const unsigned long long bytes = seen.device(index).bytes, used = seen.used(index);
    const unsigned long long reserved = simcuda::settings().nvml_reserved;
    *memory = {nvmlMemory_v2, bytes + reserved, reserved, bytes - used, used};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                                  nvmlProcessInfo_v1_t *infos) {
  return simcuda::report_holders(device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                     nvmlProcessInfo_t *infos) {
  return simcuda::report_holders(device, infoCount, infos);
}

#pragma GCC visibility pop
