// A device's memory, both as NVML reports it and as this process can use it.
// Layer: policy/devices. Values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/saturating.h"
#include "policy/devices/devices.h"

namespace ration::policy {

// In bytes. The part of `total` that is neither reserved nor free is used.
// Design: design/nvml.md#sums-that-add-up
struct MemoryFigures {
  std::uint64_t total = 0;
  std::uint64_t reserved = 0;  // by the driver, for itself
  std::uint64_t free = 0;
  // The memory that this process holds on the device. `used` includes `own` but not `idle`.
  std::uint64_t idle = 0;              // unused in its pools, so it counts as free
  std::optional<std::uint64_t> own{};  // without `idle`; if `total` is the limit, the bytes that count against it

  std::uint64_t used() const { return minus_or_zero(total, reserved + free); }
  // Shows `limit`, if there is one, as the total; then `reserved` is 0.
  void show(std::optional<std::uint64_t> limit, std::uint64_t free_bytes);
};

// Adjusts lists of processes to these figures, so that the sum over all processes is never more than `used`. This
// process is shown with `own` bytes, which excludes unused memory of its pools. The other processes share the rest of
// `used` in proportion to the memory that they hold.
// Design: design/nvml.md#lists-of-processes
class ProcessShares {
 public:
  static constexpr std::uint64_t kNotAvailable = UINT64_MAX;

  // Add the driver's figure for a process. Each list is added once, after a begin_list().
  void begin_list() { of_list_.clear(); }
  void add(unsigned pid, std::uint64_t bytes);
  // REQUIRES: all lists were added.
  void fit(const MemoryFigures &figures, unsigned own_pid);
  // The bytes to show for a process for which a list has `bytes`.
  [[nodiscard]] std::uint64_t shown(unsigned pid, std::uint64_t bytes) const;

 private:
  struct Process {
    std::uint64_t held = 0, shown = 0;
  };
  std::map<unsigned, std::uint64_t> of_list_;
  std::map<unsigned, Process> processes_;  // for a process in several lists, the larger figure
};

enum class Presented {
  yes,
  untouched,      // no device of this process, or a device without a limit: NVML's figures are kept
  not_known_yet,  // the driver cannot be asked for the devices of this process
};

// Whether both name the same device. False if either is empty or names a MIG device by its position in a GPU.
// Design: design/nvml.md#matching-devices
bool same_uuid(std::string_view a, std::string_view b);

// Shows how much of a device's memory a process that has not initialised CUDA yet could get, according to `limits` and
// to what is left in its groups. Reads the groups' files without joining the groups.
Presented present_before_cuda(const LimitSource &limits, const events::DeviceFacts &device, bool show_limit,
                              MemoryFigures &memory);

}  // namespace ration::policy
