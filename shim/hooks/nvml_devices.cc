#include "hooks/nvml_devices.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "driver/nvml.h"

namespace ration::hooks {
namespace {

using driver::real_nvml;
using runtime::ListedGpu;

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

std::vector<runtime::ListedSlice> slices_of(nvmlDevice_t device) {
  std::vector<runtime::ListedSlice> slices;
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

}  // namespace

std::string uuid_of(nvmlDevice_t device) {
  return text_of(real_nvml.nvmlDeviceGetUUID, device);
}

// NVML promises no order of its indices, but bus IDs have one, if the library can report them.
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

}  // namespace ration::hooks
