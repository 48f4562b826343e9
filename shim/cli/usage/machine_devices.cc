#include "cli/usage/machine_devices.h"

#include <algorithm>
#include <map>
#include <string>

#include "cli/run/driver_probe.h"
#include "cli/run/environment_block.h"
#include "cli/usage/process_facts.h"
#include "config/settings_context.h"

namespace ration::cli {

namespace {

// In a process of its own: the simulated driver would join the machine in this one.
std::map<std::string, int> devices_of_simulated_machine() {
  std::map<std::string, int> indexes;
  const config::SettingsContext context = config::own_context();
  EnvironmentBlock environment(config::environment_of(context).data());
  if (environment.value("SIMCUDA_MACHINE").empty()) {
    return indexes;
  }
  environment.unset("CUDA_VISIBLE_DEVICES");
  if (const auto devices = ask_devices(environment)) {
    for (const config::DeviceIdentity &device : *devices) {
      indexes[device.uuid] = device.ordinal;
    }
  }
  return indexes;
}

}  // namespace

void number_known_devices(Usage &usage) {
  number_devices(usage, devices_of_machine());
  const bool has_one = std::any_of(usage.devices.begin(), usage.devices.end(),
                                   [](const DeviceRow &device) { return device.gpu != kNoIndex; });
  if (!has_one && !usage.devices.empty()) {
    static const std::map<std::string, int> kSimulated = devices_of_simulated_machine();
    number_devices(usage, kSimulated);
  }
}

}  // namespace ration::cli
