// A device's memory as NVML reports it, and as this process can have it.
// Layer: policy/devices. Values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/saturating.h"
#include "policy/devices/devices.h"

namespace ration::policy {

// Bytes; the rest of the total is used.
// Design: design/nvml.md#sums-that-add-up
struct MemoryFigures {
  std::uint64_t total = 0;
  std::uint64_t reserved = 0;  // by the driver, for itself
  std::uint64_t free = 0;
  // Of what this process holds there; in `used` is only the rest.
  std::uint64_t idle = 0;              // in its pools, so free
  std::optional<std::uint64_t> own{};  // what counts against the limit that is the total, without the idle part

  std::uint64_t used() const { return minus_or_zero(total, reserved + free); }
  // `limit`: the size to show; nothing of it is reserved by the driver.
  void show(std::optional<std::uint64_t> limit, std::uint64_t free_bytes);
};

// What lists of processes show beside these figures, so that their sum is never more than `used`: of this process what
// counts as its own there, without what its pools hold and do not use; of the others, in proportion, as much of the
// rest as they hold.
// Design: design/nvml.md#lists-of-processes
class ProcessShares {
 public:
  static constexpr std::uint64_t kNotAvailable = UINT64_MAX;

  // What the driver says of a process: each list once.
  void begin_list() { of_list_.clear(); }
  void add(unsigned pid, std::uint64_t bytes);
  // REQUIRES: all lists were added.
  void fit(const MemoryFigures &figures, unsigned own_pid);
  // Of `bytes` that a list has for it.
  [[nodiscard]] std::uint64_t shown(unsigned pid, std::uint64_t bytes) const;

 private:
  struct Process {
    std::uint64_t held = 0, shown = 0;
  };
  std::map<unsigned, std::uint64_t> of_list_;
  std::map<unsigned, Process> processes_;  // in several lists: the larger
};

enum class Presented {
  yes,
  untouched,      // no device of this process, or no limit on it: NVML's own answer stands
  not_known_yet,  // the driver cannot be asked for the devices of this process
};

// Whether both name one device. Neither does where one is empty, or names a MIG device by its place in a GPU.
// Design: design/nvml.md#matching-devices
bool same_uuid(std::string_view a, std::string_view b);

// What a process that has not initialised CUDA would have of a device: by `limits`, and by what the groups have left.
// The groups' files are read without joining them.
Presented present_before_cuda(const LimitSource &limits, const events::DeviceFacts &device, bool show_limit,
                              MemoryFigures &memory);

}  // namespace ration::policy
