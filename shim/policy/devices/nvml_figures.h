// Reads NVML's figures for how much of a device each process holds. There are no figures if the process has not loaded
// or initialised NVML, or if NVML lists it under another process ID, as in most containers.
// Layer: policy/devices. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "policy/devices/devices.h"

namespace ration::policy {

// How much memory processes hold on a device, according to its monitor (NVML).
struct ProcessFigure {
  bool listed = false;                  // the monitor lists processes: if `bytes` is empty, this one holds nothing
  std::optional<std::uint64_t> bytes;   // of this process
  std::optional<std::uint64_t> of_all;  // of all processes and the driver
};

class ProcessFigures {
 public:
  virtual ~ProcessFigures() = default;
  // Never called under a lock.
  virtual ProcessFigure on(const Device &device) noexcept = 0;
};

class NvmlFigures final : public ProcessFigures {
 public:
  using Find = bool (*)(bool open);
  using OnOwnStack = void (*)(void (*function)(void *), void *argument);
  // `open`: whether to load and initialise NVML once, at the first query, and keep it.
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
