// What a device's monitor says that processes hold of it.
// Layer: policy/devices. Threads: any; called under no lock.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/devices/devices.h"

namespace ration::policy {

struct ProcessFigure {
  bool listed = false;                  // the monitor lists processes; this one holds nothing where `bytes` is absent
  std::optional<std::uint64_t> bytes;   // of this process
  std::optional<std::uint64_t> of_all;  // of all processes, and the driver
};

// The runtime answers from NVML.
class ProcessFigures {
 public:
  virtual ~ProcessFigures() = default;
  virtual ProcessFigure on(const Device &device) noexcept = 0;
};

// There is no monitor.
class NoProcessFigures final : public ProcessFigures {
 public:
  ProcessFigure on(const Device &) noexcept override { return {}; }
};

}  // namespace ration::policy
