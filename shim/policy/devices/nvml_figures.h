// NVML's figures of a device, by process. Answers nothing where the process has no NVML, has not initialised it, or has
// another number there, as in most containers.
// Layer: policy/devices. Threads: any.
#pragma once

#include <atomic>

#include "policy/devices/process_figures.h"

namespace ration::policy {

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
