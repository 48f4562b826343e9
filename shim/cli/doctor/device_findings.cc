// The devices, MIG, MPS, the driver's own limits, and NVML. Layer: cli.
#include <algorithm>

#include "cli/doctor/checkup.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli::doctor {

namespace {

constexpr std::string_view kPinnedLimit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

void check_one(const Checkup &checkup, std::size_t index, Findings &found) {
  const config::DeviceIdentity &device = checkup.machine.driver.devices[index];
  const auto limit = checkup.settings.limit_on(device);
  const std::string &name = checkup.machine.driver.names[index];
  const std::string uuid = device.uuid.empty() ? "of unknown UUID" : device.uuid;
  found.push_back({Check::device,
                   "device " + std::to_string(device.ordinal) + ": " + (name.empty() ? "" : name + ", ") + uuid + ", " +
                       config::show_bytes(device.total_bytes) +
                       (limit.asked ? ", limit " + config::show_bytes(limit.bytes) : ", no limit"),
                   {}});
  if (device.uuid.starts_with("MIG-")) {
    found.push_back({Check::device_mig, "device " + std::to_string(device.ordinal) + " is an instance of MIG", {}});
  }
}

void check_mps(const Checkup &checkup, Findings &found) {
  std::string set;
  for (const char *entry : checkup.environment.pointers()) {
    const std::string_view text(entry != nullptr ? entry : "");
    if (text.starts_with("CUDA_MPS_") && !text.starts_with(kPinnedLimit)) {
      set += (set.empty() ? "" : ", ") + config::shown(text);
    }
  }
  if (!set.empty()) {
    found.push_back({Check::device_mps, "programs may share a server of MPS: " + set, {}});
  }
  if (const std::string limit = checkup.environment.value(kPinnedLimit); !limit.empty()) {
    const auto said = std::find_if(checkup.settings.third_party.begin(), checkup.settings.third_party.end(),
                                   [](const auto &each) { return each.variable == kPinnedLimit; });
    const std::string standing =
        said == checkup.settings.third_party.end()
            ? ""
            : "; Ration: " + std::string(config::name_of(said->disposition)) + ": " + said->reason;
    found.push_back({Check::device_driver_limit,
                     std::string(kPinnedLimit) + "=" + config::shown(limit) +
                         ": under MPS the driver refuses what goes beyond that, whatever limit Ration has" + standing,
                     {}});
  }
}

}  // namespace

Findings check_devices(const Checkup &checkup) {
  Findings found;
  for (std::size_t i = 0; i < checkup.machine.driver.devices.size(); ++i) {
    check_one(checkup, i, found);
  }
  const NvmlFacts &nvml = checkup.machine.nvml;
  for (const std::string &uuid : nvml.mig_uuids) {
    found.push_back({Check::device_mig, "the GPU " + uuid + " is split by MIG", {}});
  }
  check_mps(checkup, found);
  if (nvml.path.empty()) {
    found.push_back({Check::nvml_missing, "no NVML: " + (nvml.error.empty() ? "it does not answer" : nvml.error), {}});
  } else {
    found.push_back({Check::nvml, "NVML " + nvml.path, {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
