// Collects the devices in several logs, to check an option that sets sizes per device. Layer: cli. Threads: a value.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "config/values/limit_map.h"

namespace ration::cli {

class DevicesOfLogs {
 public:
  template <class Log>
  void add(const Log &log) {
    for (std::size_t i = 0; i < log.devices().size(); ++i) {
      config::DeviceIdentity device = log.identity(i);
      const auto is_it = [&](const config::DeviceIdentity &each) {
        return each.ordinal == device.ordinal && each.uuid == device.uuid;
      };
      if (std::none_of(devices_.begin(), devices_.end(), is_it)) {
        devices_.push_back(std::move(device));
      }
    }
  }
  // One sentence if `sizes` names a device that is in no log or a name that is ambiguous; empty otherwise.
  std::string error_in(const config::LimitMap &sizes) const {
    const auto errors = config::errors_in_devices(sizes, devices_);
    return errors.empty() ? "" : errors.front().sentence;
  }

 private:
  std::vector<config::DeviceIdentity> devices_;
};

}  // namespace ration::cli
