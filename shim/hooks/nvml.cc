// NVML's two answers about a device's memory, as this process can really have it. Everything else that NVML says is its
// own: nothing else of it is hooked.
// Layer: hooks. Threads: any.
#include "driver/nvml.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "runtime/nvml_memory.h"

using ration::driver::real_nvml;

namespace {

using ration::policy::MemoryFigures;
using ration::runtime::ListedGpu;

constexpr unsigned kTextLength = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE

template <class Slot>
std::string text_of(const Slot &slot, nvmlDevice_t device) {
  char text[kTextLength] = {};
  return slot.present() && slot(device, text, kTextLength) == NVML_SUCCESS ? std::string(text) : std::string();
}

std::uint64_t total_of(nvmlDevice_t device) {
  nvmlMemory_t memory{};
  return real_nvml.nvmlDeviceGetMemoryInfo.present() &&
                 real_nvml.nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS
             ? memory.total
             : 0;
}

std::vector<ration::runtime::ListedSlice> slices_of(nvmlDevice_t device) {
  std::vector<ration::runtime::ListedSlice> slices;
  unsigned count = 0;
  if (!real_nvml.nvmlDeviceGetMaxMigDeviceCount.present() || !real_nvml.nvmlDeviceGetMigDeviceHandleByIndex.present() ||
      real_nvml.nvmlDeviceGetMaxMigDeviceCount(device, &count) != NVML_SUCCESS) {
    return slices;
  }
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t slice = nullptr;
    if (real_nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &slice) == NVML_SUCCESS) {
      slices.push_back({text_of(real_nvml.nvmlDeviceGetUUID, slice), total_of(slice)});
    }
  }
  return slices;
}

// NVML's indices are in no promised order: the bus ids are, where they can be asked for.
std::vector<ListedGpu> gpus_by_bus() {
  unsigned count = 0;
  if (!real_nvml.nvmlDeviceGetCount_v2.present() || !real_nvml.nvmlDeviceGetHandleByIndex_v2.present() ||
      real_nvml.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS) {
    return {};
  }
  using Place = std::tuple<unsigned, unsigned, unsigned, unsigned>;
  std::vector<std::pair<Place, ListedGpu>> found;
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t device = nullptr;
    if (real_nvml.nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS) {
      continue;
    }
    nvmlPciInfo_t pci{};
    if (real_nvml.nvmlDeviceGetPciInfo_v3.present()) {
      real_nvml.nvmlDeviceGetPciInfo_v3(device, &pci);
    }
    found.push_back({{pci.domain, pci.bus, pci.device, i},
                     {text_of(real_nvml.nvmlDeviceGetUUID, device), text_of(real_nvml.nvmlDeviceGetName, device),
                      total_of(device), slices_of(device)}});
  }
  std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<ListedGpu> gpus;
  for (auto &[place, gpu] : found) {
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// Asks NVML, then corrects its answer. Where the host's memory runs out NVML's own answer stands.
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
    correct(text_of(real_nvml.nvmlDeviceGetUUID, device));
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
