#include "runtime/nvml_memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "policy/calls/queries.h"
#include "runtime/configured_limits.h"
#include "runtime/runtime.h"

namespace ration::runtime {
namespace {

// The limits and devices that this process will have once it uses CUDA. Built at the first query and kept: reading the
// environment at every query would race with the program's setenv.
// Design: design/nvml.md#before-cuda
struct Forecast {
  pid_t process;
  bool show_limit;
  ConfiguredLimits limits;
  std::vector<events::DeviceFacts> devices;
  bool alone;              // there is only one device, so it needs no name
  const Forecast *before;  // of the parent, in a forked child; kept, as a thread may be reading it
};

constinit std::atomic<const Forecast *> latest{nullptr};

std::unique_ptr<const Forecast> make_forecast(const ListGpus &list, const Forecast *before) {
  const std::vector<ListedGpu> listed = list();
  std::vector<config::Problem> problems;  // reported at the first CUDA call, so a monitor's output stays clean
  config::Settings settings = config::read_settings(own_settings_context(), problems);
  const bool show_limit = settings.show_limit;
  auto forecast = std::make_unique<Forecast>(
      Forecast{getpid(), show_limit, ConfiguredLimits(std::move(settings)), {}, listed.size() == 1, before});
  for (const VisibleDevice &device : visible_devices(listed, config::process_environment())) {
    forecast->devices.push_back({device.ordinal, device.uuid, "", device.total, device.total, false});
  }
  forecast->limits.resolve_devices(forecast->devices);
  return forecast;
}

const Forecast &forecast(const ListGpus &list) {
  const Forecast *known = latest.load(std::memory_order_acquire);
  if (known != nullptr && known->process == getpid()) {
    return *known;
  }
  std::unique_ptr<const Forecast> made = make_forecast(list, known);
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
  const Forecast &expected = forecast(list);
  const auto meant = std::find_if(expected.devices.begin(), expected.devices.end(), [&](const auto &device) {
    return uuid.empty() ? expected.alone : device.uuid == uuid;
  });
  return meant != expected.devices.end() &&
         policy::present_before_cuda(expected.limits, *meant, expected.show_limit, memory) == policy::Presented::yes;
}

}  // namespace ration::runtime
