#include "runtime/nvml_memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "config/visible_devices.h"
#include "policy/calls/queries.h"
#include "runtime/configured_limits.h"
#include "runtime/runtime.h"

namespace ration::runtime {
namespace {

// What this process will get once it begins with CUDA. Made at its first question and kept: reading the environment at
// each would race with the program's setenv.
struct Outlook {
  pid_t process;
  bool show_limit;
  ConfiguredLimits limits;
  std::vector<events::DeviceFacts> devices;
  bool alone;             // there is one device only, which needs no name
  const Outlook *before;  // a parent's: somebody may be reading it
};

constinit std::atomic<const Outlook *> latest{nullptr};

std::uint64_t total_of(const std::vector<ListedGpu> &listed, const std::string &uuid) {
  for (const ListedGpu &gpu : listed) {
    if (gpu.uuid == uuid) {
      return gpu.total;
    }
    for (const ListedSlice &slice : gpu.slices) {
      if (slice.uuid == uuid) {
        return slice.total;
      }
    }
  }
  return 0;
}

std::unique_ptr<const Outlook> look_out(const ListGpus &list, const Outlook *before) {
  const std::vector<ListedGpu> listed = list();
  std::vector<config::MachineGpu> gpus;
  for (const ListedGpu &gpu : listed) {
    gpus.push_back({gpu.uuid, gpu.model, {}});
    for (const ListedSlice &slice : gpu.slices) {
      gpus.back().slices.push_back(slice.uuid);
    }
  }
  std::vector<config::Problem> problems;  // told at the first CUDA call; a monitor's output is its own
  config::Settings settings = read_own_settings(problems);
  const bool show_limit = settings.show_limit;
  auto outlook = std::make_unique<Outlook>(
      Outlook{getpid(), show_limit, ConfiguredLimits(std::move(settings)), {}, listed.size() == 1, before});
  for (const config::VisibleDevice &device : config::visible_devices(gpus, config::process_environment())) {
    const std::uint64_t total = total_of(listed, device.uuid);
    outlook->devices.push_back({device.ordinal, device.uuid, "", total, total, false});
  }
  outlook->limits.meet(outlook->devices);
  return outlook;
}

const Outlook &outlook(const ListGpus &list) {
  const Outlook *known = latest.load(std::memory_order_acquire);
  if (known != nullptr && known->process == getpid()) {
    return *known;
  }
  std::unique_ptr<const Outlook> made = look_out(list, known);
  if (latest.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *known;  // another thread of this process was first
}

}  // namespace

bool present_memory(const std::string &uuid, const ListGpus &list, policy::MemoryFigures &memory) {
  if (Runtime::existing() != nullptr) {
    const bool alone = uuid.empty() && list().size() == 1;
    const policy::Presented presented = family<policy::Queries>->present_device(uuid, alone, memory);
    if (presented != policy::Presented::not_known_yet) {
      return presented == policy::Presented::yes;
    }
  }
  const Outlook &expected = outlook(list);
  const auto meant = std::find_if(expected.devices.begin(), expected.devices.end(), [&](const auto &device) {
    return uuid.empty() ? expected.alone : device.uuid == uuid;
  });
  return meant != expected.devices.end() &&
         policy::present_before_cuda(expected.limits, *meant, expected.show_limit, memory) == policy::Presented::yes;
}

}  // namespace ration::runtime
