// NVML's two answers about a device's memory, corrected to what this process can really have. The only other NVML
// functions that are hooked are those that report who holds how much (nvml_processes.cc). Layer: hooks. Threads: any.
#include "driver/nvml.h"

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/nvml_devices.h"
#include "runtime/nvml_memory.h"

using ration::driver::real_nvml;

namespace {

using ration::hooks::gpus_by_bus;
using ration::hooks::uuid_of;
using ration::policy::MemoryFigures;

// Asks NVML, then corrects its answer. If host memory runs out, NVML's own answer stands.
template <class Slot, class Memory, class Correct>
nvmlReturn_t ask(const Slot &slot, nvmlDevice_t device, Memory *memory, const Correct &correct) noexcept {
  const ration::hooks::Inside inside;
  if (!slot.present()) {
    return NVML_ERROR_FUNCTION_NOT_FOUND;
  }
  const nvmlReturn_t result = slot(device, memory);
  if (result != NVML_SUCCESS || memory == nullptr || inside.nested()) {
    return result;
  }
  try {
    correct(uuid_of(device));
  } catch (...) {
  }
  return result;
}

}  // namespace

extern "C" nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  return ask(real_nvml.nvmlDeviceGetMemoryInfo, device, memory, [&](const std::string &uuid) {
    MemoryFigures seen{memory->total, 0, memory->free};
    if (ration::runtime::present_memory(uuid, gpus_by_bus, seen)) {
      *memory = {seen.total, seen.free, seen.used()};
    }
  });
}

extern "C" nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  return ask(real_nvml.nvmlDeviceGetMemoryInfo_v2, device, memory, [&](const std::string &uuid) {
    MemoryFigures seen{memory->total, memory->reserved, memory->free};
    if (ration::runtime::present_memory(uuid, gpus_by_bus, seen)) {
      *memory = {memory->version, seen.total, seen.reserved, seen.free, seen.used()};
    }
  });
}
