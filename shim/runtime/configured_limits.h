// Gives the policy the limits and preallocations that the settings request.
// Layer: runtime. Threads: read-only after resolve_devices().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings_context.h"
#include "config/values/size.h"
#include "policy/devices/devices.h"

namespace ration::runtime {

// The sources of this process's settings. Called at first use, and once before that if NVML is queried.
config::SettingsContext own_settings_context();

class ConfiguredLimits : public policy::LimitSource {
 public:
  explicit ConfiguredLimits(config::Settings settings);

  std::vector<std::string> resolve_devices(const std::vector<events::DeviceFacts> &devices) override;
  policy::DeviceLimit limit_on(const events::DeviceFacts &device) const override;
  policy::Preallocation preallocation_on(const events::DeviceFacts &device) const override;
  policy::Preallocation async_preallocation_on(const events::DeviceFacts &device) const override;
  bool asked_for() const override { return settings_.limit_asked(); }
  std::string spoken(std::uint64_t bytes) const override { return config::show_bytes(bytes); }
  std::string state_folder() const override { return settings_.state_folder(); }
  std::vector<policy::GroupAsked> groups() const override;
  std::uint64_t guarantee_on(const events::DeviceFacts &device) const override;
  std::optional<std::uint64_t> group_limit_on(std::size_t group, const events::DeviceFacts &device) const override;

 private:
  // `asked` has the same meaning as in config::Settings::preallocation_on().
  policy::Preallocation plan(const events::DeviceFacts &device, bool asked) const;

  config::Settings settings_;
};

}  // namespace ration::runtime
