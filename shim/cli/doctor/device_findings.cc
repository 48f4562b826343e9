// Checks the devices, MIG, MPS, the driver's own limits, and NVML. Layer: cli.
#include <algorithm>

#include "cli/base/text_table.h"
#include "cli/doctor/checkup.h"
#include "cli/usage/process_rows.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli::doctor {

namespace {

constexpr std::string_view kPinnedLimit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

std::string limits_on(const config::Settings &settings, const config::DeviceIdentity &device) {
  const auto limit = settings.limit_on(device);
  std::string text = limit.asked ? ", limit " + config::show_bytes(limit.bytes) : "";
  for (const config::Settings::Group &group : settings.groups) {
    if (const auto of_group = settings.group_limit_on(group, device)) {
      const std::string label = label_of(kind_of(group.kind), group.name);
      text += ", limit of group " + config::printable(label) + " " + config::show_bytes(*of_group);
    }
  }
  return text.empty() ? ", no limit" : text;
}

// Reports a limit that is larger than the device, which restricts nothing.
void check_size(const config::LimitMap &limit, const config::DeviceIdentity &device, Findings &found) {
  for (const config::LimitItem &item : limit) {
    if (item.fits(device) && item.size.bytes_of(device.total_bytes) > device.total_bytes) {
      found.push_back({Check::device_smaller_than_limit,
                       item.stated + " is more than device " + std::to_string(device.ordinal) + " has, " +
                           config::show_bytes(device.total_bytes) + ": it limits nothing there",
                       {}});
      return;
    }
  }
}

void check_one(const Checkup &checkup, std::size_t index, Findings &found) {
  const config::DeviceIdentity &device = checkup.machine.driver.devices[index];
  const std::string &name = checkup.machine.driver.names[index];
  const std::string uuid = device.uuid.empty() ? "of unknown UUID" : device.uuid;
  const std::string limits = limits_on(checkup.settings, device);  // `ration set` may have changed those of a process
  found.push_back({Check::device,
                   "device " + std::to_string(device.ordinal) + ": " + (name.empty() ? "" : name + ", ") + uuid + ", " +
                       config::show_bytes(device.total_bytes) +
                       (checkup.process ? ", as it was started: " + limits.substr(2) : limits),
                   {}});
  check_size(checkup.settings.limit, device, found);
  for (const config::Settings::Group &group : checkup.settings.groups) {
    check_size(group.limit, device, found);
  }
  if (device.uuid.starts_with("MIG-")) {
    found.push_back({Check::device_mig, "device " + std::to_string(device.ordinal) + " is an instance of MIG", {}});
  }
}

// Reports a limit of the driver's own that is smaller than the one that Ration was asked for.
void check_driver_limit(const Checkup &checkup, Findings &found) {
  config::Settings asked = checkup.settings;
  std::erase_if(asked.limit, [](const config::LimitItem &each) { return each.stated.starts_with(kPinnedLimit); });
  for (const config::DeviceIdentity &device : checkup.machine.driver.devices) {
    const auto ours = asked.limit_on(device);
    const auto held = checkup.settings.limit_on(device);
    if (ours.asked && held.bytes < ours.bytes) {
      found.push_back({Check::device_driver_limit,
                       std::string(kPinnedLimit) + "=" + config::shown(checkup.environment.value(kPinnedLimit)) +
                           ": of device " + std::to_string(device.ordinal) + " " + config::show_bytes(held.bytes) +
                           " hold, less than the " + config::show_bytes(ours.bytes) + " that Ration was asked for",
                       {}});
    }
  }
}

// Reports entries without a device: CUDA_VISIBLE_DEVICES ends at the first of them.
void check_visible(const Checkup &checkup, Findings &found) {
  const std::string listed = checkup.probed.value("CUDA_VISIBLE_DEVICES");
  const std::size_t devices = checkup.machine.driver.devices.size();
  const auto entries = static_cast<std::size_t>(std::count(listed.begin(), listed.end(), ',') + 1);
  if (!listed.empty() && devices != 0 && entries > devices) {
    found.push_back({Check::device_hidden,
                     "CUDA_VISIBLE_DEVICES=" + config::shown(listed) + " lists " + std::to_string(entries) +
                         ", and programs get " + counted(devices, "device", "devices") +
                         ": the list ends at the first that is not there",
                     {}});
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
  check_visible(checkup, found);
  check_mps(checkup, found);
  check_driver_limit(checkup, found);
  if (nvml.path.empty()) {
    found.push_back({Check::nvml_missing, "no NVML: " + (nvml.error.empty() ? "it does not answer" : nvml.error), {}});
  } else {
    found.push_back({Check::nvml, "NVML " + nvml.path, {}});
  }
  return found;
}

}  // namespace ration::cli::doctor
