// A device's memory as NVML reports it, and as this process can have it.
// Layer: policy/devices. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "policy/devices/devices.h"

namespace ration::policy {

// Bytes; the rest of the total is used.
struct MemoryFigures {
  std::uint64_t total = 0;
  std::uint64_t reserved = 0;  // by the driver, for itself
  std::uint64_t free = 0;

  std::uint64_t used() const { return total - std::min(total, reserved + free); }
  // `limit`: the size to show; nothing of it is reserved by the driver.
  void show(std::optional<std::uint64_t> limit, std::uint64_t free_bytes);
};

enum class Presented {
  yes,
  untouched,      // no device of this process, or no limit on it: NVML's own answer stands
  not_known_yet,  // the driver cannot be asked for the devices of this process
};

// Whether both name one device. Neither does where one is empty, or names a MIG device by its place in a GPU.
bool same_uuid(std::string_view a, std::string_view b);

// What a process that has not initialised CUDA would have of a device: by `limits`, and by what the groups have left.
// The groups' files are read without joining them.
Presented present_before_cuda(const LimitSource &limits, const events::DeviceFacts &device, bool show_limit,
                              MemoryFigures &memory);

}  // namespace ration::policy
