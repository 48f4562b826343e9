// Finds out whether the kernel's controller of device memory limits this process's cgroup, under a driver that supports
// it (r615, CUDA 13.4), or whether only Ration limits it. Layer: cli.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "cli/doctor/checkup.h"
#include "config/values/quotes.h"
#include "config/values/size.h"

namespace ration::cli::doctor {

namespace {

constexpr std::string_view kRoot = "/sys/fs/cgroup";
constexpr std::string_view kPinnedByDaemon = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
constexpr std::string_view kContainerLimit = "NVIDIA_GPU_MEMORY_LIMIT";

// The path of the process's cgroup v2 (cgroups(7)); empty if there is none.
std::string cgroup_of(const std::string &process) {
  constexpr std::string_view kUnified = "0::";
  std::ifstream lines("/proc/" + process + "/cgroup");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kUnified)) {
      return line.substr(kUnified.size());
    }
  }
  return {};
}

// Reads the lines of dmem.max: a region, and its bytes or "max". The limits of parent folders apply too.
Findings limits_of_kernel(std::string cgroup) {
  Findings found;
  for (; !cgroup.empty(); cgroup.resize(cgroup.rfind('/'))) {
    const std::string file = std::string(kRoot) + (cgroup == "/" ? "" : cgroup) + "/dmem.max";
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string region;
      std::string most;
      words >> region >> most;
      std::uint64_t bytes = 0;
      const auto [end, error] = std::from_chars(most.data(), most.data() + most.size(), bytes);
      if (error == std::errc() && end == most.data() + most.size()) {
        found.push_back({Check::device_kernel_limit,
                         config::printable(file) + " limits " + config::printable(region) + " to " +
                             config::show_bytes(bytes) + " for all processes of the cgroup",
                         {}});
      }
    }
  }
  return found;
}

// What Ration did with another program's variable.
config::Disposition standing_of(const Checkup &checkup, std::string_view variable) {
  const auto &all = checkup.settings.third_party;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto &each) { return each.variable == variable; });
  return found == all.end() ? config::Disposition::kIgnored : found->disposition;
}

// True if any existing device is limited.
bool is_limited(const Checkup &checkup) {
  const config::Settings &settings = checkup.settings;
  return std::any_of(
      checkup.machine.driver.devices.begin(), checkup.machine.driver.devices.end(), [&](const auto &device) {
        return settings.limit_on(device).asked ||
               std::any_of(settings.groups.begin(), settings.groups.end(),
                           [&](const auto &group) { return settings.group_limit_on(group, device).has_value(); });
      });
}

}  // namespace

Findings check_enforcement(const Checkup &checkup) {
  Findings found = limits_of_kernel(cgroup_of(checkup.process ? std::to_string(checkup.process->pid) : "self"));
  if (!found.empty() || standing_of(checkup, kPinnedByDaemon) == config::Disposition::kHonoured) {
    return found;
  }
  std::string what = "neither the driver nor the kernel (dmem.max) limits device memory here";
  if (is_limited(checkup)) {
    what += ": Ration's limit is the only one";
  }
  if (standing_of(checkup, kContainerLimit) == config::Disposition::kHonoured) {
    what += ", that of " + std::string(kContainerLimit) + "=" +
            config::shown(checkup.environment.value(kContainerLimit)) + " too";
  }
  return {{Check::device_only_cap, std::move(what), {}}};
}

}  // namespace ration::cli::doctor
