// What NVML says of a device's memory, corrected to what this process can really have.
// Layer: runtime. Threads: any. Called from: the hooks of NVML, before CUDA is used in the process and after.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/devices/memory_figures.h"

namespace ration::runtime {

struct ListedSlice {
  std::string uuid;
  std::uint64_t total = 0;
};

// A GPU as NVML lists it. Bytes.
struct ListedGpu {
  std::string uuid;  // empty: it has none
  std::string model;
  std::uint64_t total = 0;
  std::vector<ListedSlice> slices;  // its MIG devices
};
using ListGpus = std::function<std::vector<ListedGpu>()>;  // in the order of their PCI bus ids

// Of the device called `uuid` (empty: it has no name). False: its memory is not for us to correct. Before the driver is
// initialised the settings, the environment and the machine are those of the process's first such question.
// Begins nothing: no log, no group is joined, the driver is not loaded.
bool present_memory(const std::string &uuid, const ListGpus &list, policy::MemoryFigures &memory);

}  // namespace ration::runtime
