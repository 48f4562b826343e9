// Predicts from CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER which GPUs of the machine CUDA will show to this process,
// and in which order. Used in processes in which CUDA cannot be asked yet.
// Layer: runtime, for nvml_memory.cc. Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ration::runtime {

struct ListedSlice {
  std::string uuid;
  std::uint64_t total = 0;
};

// A GPU as NVML lists it. Sizes are in bytes.
struct ListedGpu {
  std::string uuid;   // "GPU-..."; empty: it has none
  std::string model;  // GPUs of one model are equally fast
  std::uint64_t total = 0;
  std::vector<ListedSlice> slices;  // its MIG devices if it is partitioned
};

struct VisibleDevice {
  std::string uuid;
  std::uint64_t total = 0;
  int ordinal = -1;  // the device's number in the program; -1: unknown
};

// `gpus` are in the order of their PCI bus ids. CUDA uses that order if CUDA_DEVICE_ORDER asks for it, or if all GPUs
// are of one model. Otherwise CUDA puts the fastest GPU first, so it is not known which GPU a number means, and devices
// named by number are left out. For a partitioned GPU, only slices that CUDA_VISIBLE_DEVICES names are returned.
// `environment`: NULL-terminated "NAME=value" list.
std::vector<VisibleDevice> visible_devices(const std::vector<ListedGpu> &gpus, const char *const *environment);

}  // namespace ration::runtime
