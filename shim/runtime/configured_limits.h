// Limits as the settings have them.
// Layer: runtime: settings become options here. Threads: after meet() everything is read-only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "policy/devices/devices.h"

namespace ration::runtime {

// What this process is to do, of every source there is. At first use, and once for NVML before it.
config::Settings read_own_settings(std::vector<config::Problem> &problems);

class ConfiguredLimits : public policy::LimitSource {
 public:
  explicit ConfiguredLimits(config::Settings settings);

  std::vector<std::string> meet(const std::vector<events::DeviceFacts> &devices) override;
  policy::DeviceLimit limit_on(const events::DeviceFacts &device) const override;
  policy::Preallocation preallocation_on(const events::DeviceFacts &device) const override;
  policy::Preallocation async_preallocation_on(const events::DeviceFacts &device) const override;
  bool asked_for() const override { return settings_.limit_asked(); }
  std::string state_folder() const override { return settings_.state_folder(); }
  std::vector<policy::GroupAsked> groups() const override;
  std::optional<std::uint64_t> group_limit_on(std::size_t group, const events::DeviceFacts &device) const override;

 private:
  config::Settings settings_;
};

}  // namespace ration::runtime
