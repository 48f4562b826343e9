#include "policy/devices/nvml_figures.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "driver/nvml.h"

namespace ration::policy {
namespace {

using driver::real_nvml;

constexpr unsigned kProcesses = 64;  // in the first try
constexpr int kTries = 4;            // because new processes may appear

// Runs on a stack of our own, because loading a library needs more stack than a thread of the program may have.
struct Opening {
  NvmlFigures::Find find;
  bool found;
};
void open_nvml(void *argument) noexcept {
  auto &opening = *static_cast<Opening *>(argument);
  opening.found = opening.find(true);
  if (opening.found && real_nvml.nvmlInit_v2.present()) {
    (void)real_nvml.nvmlInit_v2();  // NVML counts these, so the program's own nvmlShutdown does not end ours
  }
}

bool list(nvmlDevice_t device, std::vector<nvmlProcessInfo_t> &processes) {
  for (int tries = 0; tries < kTries; ++tries) {
    auto count = static_cast<unsigned>(processes.size());
    const nvmlReturn_t result = real_nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data());
    if (result == NVML_SUCCESS) {
      processes.resize(std::min<std::size_t>(count, processes.size()));
      return true;
    }
    if (result != NVML_ERROR_INSUFFICIENT_SIZE) {
      return false;
    }
    processes.resize(count + kProcesses);
  }
  return false;
}

}  // namespace

bool NvmlFigures::find() {
  if (find_ == nullptr) {
    return false;
  }
  if (to_open_.load(std::memory_order_relaxed) && to_open_.exchange(false, std::memory_order_relaxed)) {
    Opening opening{find_, false};
    on_own_stack_ != nullptr ? on_own_stack_(open_nvml, &opening) : open_nvml(&opening);
    return opening.found;
  }
  return find_(false);
}

ProcessFigure NvmlFigures::on(const Device &device) noexcept try {
  ProcessFigure figure;
  nvmlDevice_t handle = nullptr;
  if (!find() || device.uuid.empty() || !real_nvml.nvmlDeviceGetHandleByUUID.present() ||
      real_nvml.nvmlDeviceGetHandleByUUID(device.uuid.c_str(), &handle) != NVML_SUCCESS) {
    return figure;
  }
  nvmlMemory_t memory{};
  if (real_nvml.nvmlDeviceGetMemoryInfo.present() &&
      real_nvml.nvmlDeviceGetMemoryInfo(handle, &memory) == NVML_SUCCESS) {
    figure.of_all = memory.used;
  }
  std::vector<nvmlProcessInfo_t> processes(kProcesses);
  if (!real_nvml.nvmlDeviceGetComputeRunningProcesses_v3.present() || !list(handle, processes)) {
    return figure;
  }
  figure.listed = true;
  const auto own = std::find_if(processes.begin(), processes.end(), [](const nvmlProcessInfo_t &process) {
    return process.pid == static_cast<unsigned>(getpid());
  });
  if (own != processes.end() && own->usedGpuMemory != ~0ULL) {
    figure.bytes = own->usedGpuMemory;
  }
  return figure;
} catch (...) {  // no host memory
  return {};
}

}  // namespace ration::policy
