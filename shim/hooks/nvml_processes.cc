// What NVML reports about the memory that processes hold, in every list and version. The rows are fitted to the used
// memory that nvml.cc reports for the device: their sum never exceeds it, and no row exceeds the total. If NVML cannot
// say how much memory the device has (because it is the host's), its lists stand. Layer: hooks. Threads: any.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "driver/nvml.h"
#include "hooks/boundary.h"
#include "hooks/hooks.h"
#include "hooks/nvml_devices.h"
#include "runtime/nvml_memory.h"

using ration::driver::real_nvml;
using ration::policy::MemoryFigures;
using ration::policy::ProcessShares;

namespace {

constexpr unsigned kMemoryVersion2 = sizeof(nvmlMemory_v2_t) | 2U << 24U;
constexpr unsigned kRows = 64;  // room in the first try
constexpr int kTries = 4;       // as long as new processes appear

// The device's memory as this process sees it; nullopt if NVML's own answers stand.
std::optional<MemoryFigures> figures_of(nvmlDevice_t device) {
  MemoryFigures seen;
  nvmlMemory_v2_t two{};
  two.version = kMemoryVersion2;
  nvmlMemory_t one{};
  if (real_nvml.nvmlDeviceGetMemoryInfo_v2.present() &&
      real_nvml.nvmlDeviceGetMemoryInfo_v2(device, &two) == NVML_SUCCESS) {
    seen = {two.total, two.reserved, two.free, 0, std::nullopt};
  } else if (real_nvml.nvmlDeviceGetMemoryInfo.present() &&
             real_nvml.nvmlDeviceGetMemoryInfo(device, &one) == NVML_SUCCESS) {
    seen = {one.total, 0, one.free, 0, std::nullopt};
  } else {
    return std::nullopt;
  }
  const bool presented =
      ration::runtime::present_memory(ration::hooks::uuid_of(device), ration::hooks::gpus_by_bus, seen);
  return presented ? std::optional(seen) : std::nullopt;
}

template <class Info, class Slot>
bool add_list(const Slot &slot, nvmlDevice_t device, ProcessShares &shares) {
  std::vector<Info> rows(kRows);
  for (int tries = 0; slot.present() && tries < kTries; ++tries) {
    auto count = static_cast<unsigned>(rows.size());
    const nvmlReturn_t result = slot(device, &count, rows.data());
    if (result == NVML_SUCCESS) {
      shares.begin_list();
      for (unsigned i = 0; i < std::min<std::size_t>(count, rows.size()); ++i) {
        shares.add(rows[i].pid, rows[i].usedGpuMemory);
      }
      return true;
    }
    if (result != NVML_ERROR_INSUFFICIENT_SIZE) {
      return false;
    }
    rows.resize(count + kRows);
  }
  return false;
}

// Uses the newest version that the NVML library has.
template <class Third, class Second, class First>
void add_lists(const Third &third, const Second &second, const First &first, nvmlDevice_t device,
               ProcessShares &shares) {
  (void)(add_list<nvmlProcessInfo_t>(third, device, shares) || add_list<nvmlProcessInfo_t>(second, device, shares) ||
         add_list<nvmlProcessInfo_v1_t>(first, device, shares));
}

// Corrects the rows that NVML gave to the program. They count too, as the lists may have changed since.
template <class Info>
void correct(nvmlDevice_t device, Info *rows, unsigned count) {
  const std::optional<MemoryFigures> figures = figures_of(device);
  if (!figures) {
    return;
  }
  ProcessShares shares;
  add_lists(real_nvml.nvmlDeviceGetComputeRunningProcesses_v3, real_nvml.nvmlDeviceGetComputeRunningProcesses_v2,
            real_nvml.nvmlDeviceGetComputeRunningProcesses, device, shares);
  add_lists(real_nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, real_nvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
            real_nvml.nvmlDeviceGetGraphicsRunningProcesses, device, shares);
  add_lists(real_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, real_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
            real_nvml.nvmlDeviceGetMPSComputeRunningProcesses, device, shares);
  shares.begin_list();
  for (unsigned i = 0; i < count; ++i) {
    shares.add(rows[i].pid, rows[i].usedGpuMemory);
  }
  shares.fit(*figures, static_cast<unsigned>(getpid()));
  for (unsigned i = 0; i < count; ++i) {
    rows[i].usedGpuMemory = shares.shown(rows[i].pid, rows[i].usedGpuMemory);
  }
}

// Asks NVML, then corrects its answer. If host memory runs out, NVML's own answer stands.
template <class Slot, class Correct, class... Arguments>
nvmlReturn_t ask(const Slot &slot, const Correct &correct, Arguments... arguments) noexcept {
  const ration::hooks::Inside inside;
  if (!slot.present()) {
    return NVML_ERROR_FUNCTION_NOT_FOUND;
  }
  const nvmlReturn_t result = slot(arguments...);
  if (result == NVML_SUCCESS && !inside.nested()) {
    try {
      correct();
    } catch (...) {
    }
  }
  return result;
}

template <class Slot, class Info>
nvmlReturn_t list(const Slot &slot, nvmlDevice_t device, unsigned *count, Info *infos) noexcept {
  const auto correct_rows = [&] {
    if (count != nullptr && infos != nullptr) {
      correct(device, infos, *count);
    }
  };
  return ask(slot, correct_rows, device, count, infos);
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *infoCount,
                                                  nvmlProcessInfo_v1_t *infos) {
  return list(real_nvml.nvmlDeviceGetComputeRunningProcesses, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *infoCount,
                                                     nvmlProcessInfo_t *infos) {
  return list(real_nvml.nvmlDeviceGetComputeRunningProcesses_v2, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *infoCount,
                                                     nvmlProcessInfo_t *infos) {
  return list(real_nvml.nvmlDeviceGetComputeRunningProcesses_v3, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *infoCount,
                                                   nvmlProcessInfo_v1_t *infos) {
  return list(real_nvml.nvmlDeviceGetGraphicsRunningProcesses, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *infoCount,
                                                      nvmlProcessInfo_t *infos) {
  return list(real_nvml.nvmlDeviceGetGraphicsRunningProcesses_v2, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *infoCount,
                                                      nvmlProcessInfo_t *infos) {
  return list(real_nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned *infoCount,
                                                     nvmlProcessInfo_v1_t *infos) {
  return list(real_nvml.nvmlDeviceGetMPSComputeRunningProcesses, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *infoCount,
                                                        nvmlProcessInfo_t *infos) {
  return list(real_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *infoCount,
                                                        nvmlProcessInfo_t *infos) {
  return list(real_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t *plist) {
  const auto correct_rows = [&] {
    if (plist == nullptr || plist->procArray == nullptr) {
      return;
    }
    correct(device, plist->procArray, plist->numProcArrayEntries);
    for (unsigned i = 0; i < plist->numProcArrayEntries; ++i) {
      nvmlProcessDetail_v1_t &row = plist->procArray[i];
      if (row.usedGpuCcProtectedMemory != ProcessShares::kNotAvailable) {
        row.usedGpuCcProtectedMemory = std::min(row.usedGpuCcProtectedMemory, row.usedGpuMemory);
      }
    }
  };
  return ask(real_nvml.nvmlDeviceGetRunningProcessDetailList, correct_rows, device, plist);
}

// The most that a process ever held. The process may have ended, so the sum of such values is not limited.
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, nvmlAccountingStats_t *stats) {
  const auto correct_peak = [&] {
    const std::optional<MemoryFigures> figures = stats != nullptr ? figures_of(device) : std::nullopt;
    if (figures && stats->maxMemoryUsage != ProcessShares::kNotAvailable) {
      stats->maxMemoryUsage = std::min<unsigned long long>(stats->maxMemoryUsage, figures->total);
    }
  };
  return ask(real_nvml.nvmlDeviceGetAccountingStats, correct_peak, device, pid, stats);
}

}  // extern "C"
