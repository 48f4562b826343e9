// NVML's figures of a device, by process. Answers nothing where the process has no NVML, has not initialised it, or has
// another number there, as in most containers.
// Layer: policy/devices. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "policy/devices/devices.h"

namespace ration::policy {

// What a device's monitor says that processes hold of it.
struct ProcessFigure {
  bool listed = false;                  // the monitor lists processes; this one holds nothing where `bytes` is absent
  std::optional<std::uint64_t> bytes;   // of this process
  std::optional<std::uint64_t> of_all;  // of all processes, and the driver
};

class ProcessFigures {
 public:
  virtual ~ProcessFigures() = default;
  // Called under no lock.
  virtual ProcessFigure on(const Device &device) noexcept = 0;
};

class NvmlFigures final : public ProcessFigures {
 public:
  using Find = bool (*)(bool open);
  using OnOwnStack = void (*)(void (*function)(void *), void *argument);
  // `open`: loads and initialises NVML at the first question, once, for good.
  NvmlFigures(Find find, OnOwnStack on_own_stack, bool open)
      : find_(find), on_own_stack_(on_own_stack), to_open_(open) {}

  ProcessFigure on(const Device &device) noexcept override;

 private:
  bool find();

  const Find find_;
  const OnOwnStack on_own_stack_;
  std::atomic<bool> to_open_;
};

}  // namespace ration::policy
