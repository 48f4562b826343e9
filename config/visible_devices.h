// Which of a machine's GPUs CUDA will show to this process, and in which order: what CUDA_VISIBLE_DEVICES and
// CUDA_DEVICE_ORDER say, for a process in which CUDA cannot be asked yet.
// Layer: config, a leaf. Threads: values.
#pragma once

#include <string>
#include <vector>

namespace ration::config {

struct MachineGpu {
  std::string uuid;                 // "GPU-..."
  std::string model;                // equal ones are equally fast
  std::vector<std::string> slices;  // the MIG devices that it is cut into, by UUID
};

struct VisibleDevice {
  std::string uuid;
  int ordinal = -1;  // as the program will count them; -1: that cannot be told
};

// `gpus` in the order of their PCI bus ids, which is CUDA's own if they are asked for in it, or are all alike; else
// CUDA puts the fastest first, and what a number means cannot be told: such devices are left out. So is, of a GPU that
// is cut up, whatever is not named itself. `environment`: NULL-terminated "NAME=value" list.
std::vector<VisibleDevice> visible_devices(const std::vector<MachineGpu> &gpus, const char *const *environment);

}  // namespace ration::config
