#include "runtime/configured_limits.h"

#include <algorithm>
#include <utility>

#include "runtime/loaded_framework.h"

namespace ration::runtime {

using Kind = config::Settings::Group::Kind;

config::SettingsContext own_settings_context() {
  config::SettingsContext own = config::own_context();
  own.framework = loaded_framework();
  return own;
}

// The settings list the trees from the outermost to the innermost, then the container, then the named group, whose
// members may be in other containers. Policy wants the innermost tree first.
ConfiguredLimits::ConfiguredLimits(config::Settings settings) : settings_(std::move(settings)) {
  std::reverse(settings_.groups.begin(), std::find_if(settings_.groups.begin(), settings_.groups.end(),
                                                      [](const auto &group) { return group.kind != Kind::kTree; }));
}

std::vector<std::string> ConfiguredLimits::resolve_devices(const std::vector<events::DeviceFacts> &devices) {
  std::vector<config::DeviceIdentity> identities;
  for (const events::DeviceFacts &device : devices) {
    identities.push_back({device.ordinal, device.uuid, device.total});
  }
  std::vector<config::Problem> problems;
  settings_.resolve_devices(identities, problems);
  std::vector<std::string> lines;
  for (const auto &found : {problems, settings_.cut_by_locks(identities)}) {
    for (const config::Problem &problem : found) {
      lines.push_back(problem.line);
    }
  }
  return lines;
}

policy::DeviceLimit ConfiguredLimits::limit_on(const events::DeviceFacts &device) const {
  const config::Settings::Limit limit = settings_.limit_on({device.ordinal, device.uuid, device.total});
  return {limit.asked, limit.bytes};
}

policy::Preallocation ConfiguredLimits::preallocation_on(const events::DeviceFacts &device) const {
  return plan(device, false);
}

// With RATION_IPC=direct nothing is preallocated: one slab of everything would leave no memory for the driver's own
// blocks.
policy::Preallocation ConfiguredLimits::plan(const events::DeviceFacts &device, bool asked) const {
  if (settings_.ipc == config::Ipc::kDirect) {
    return {};
  }
  const auto plan = settings_.preallocation_on({device.ordinal, device.uuid, device.total}, asked);
  const std::uint64_t granule_bytes = settings_.granule ? settings_.granule->bytes_of(device.total) : 0;
  const std::uint64_t threshold =
      settings_.release_threshold ? settings_.release_threshold->bytes_of(device.total) : UINT64_MAX;
  return {plan.bytes, plan.after, plan.headroom, plan.leaves_context, false, plan.fair, granule_bytes, threshold};
}

// A size means the same as in TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC: either all of it is preallocated or nothing.
policy::Preallocation ConfiguredLimits::async_preallocation_on(const events::DeviceFacts &device) const {
  if (const auto *size = std::get_if<config::Size>(&settings_.async_preallocate)) {
    return {size->bytes_of(device.total), 0, 0, false, true, false};
  }
  return std::get<bool>(settings_.async_preallocate) ? plan(device, true) : policy::Preallocation{};
}

std::vector<policy::GroupAsked> ConfiguredLimits::groups() const {
  std::vector<policy::GroupAsked> asked;
  for (const config::Settings::Group &group : settings_.groups) {
    switch (group.kind) {
      case Kind::kTree:
        asked.push_back({ledger::GroupKind::kTree, group.name});
        break;
      case Kind::kContainer:
        asked.push_back({ledger::GroupKind::kContainer, ledger::container_group_name(group.name)});
        break;
      case Kind::kNamed:
        asked.push_back({ledger::GroupKind::kNamed, group.name});
        break;
    }
  }
  return asked;
}

std::uint64_t ConfiguredLimits::guarantee_on(const events::DeviceFacts &device) const {
  return settings_.guarantee_on({device.ordinal, device.uuid, device.total});
}

std::optional<std::uint64_t> ConfiguredLimits::group_limit_on(std::size_t group,
                                                              const events::DeviceFacts &device) const {
  return settings_.group_limit_on(settings_.groups[group], {device.ordinal, device.uuid, device.total});
}

}  // namespace ration::runtime
