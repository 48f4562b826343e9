// Checks whether options of `ration run` set limits for devices that the command will not have. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "config/problem.h"
#include "config/settings.h"

namespace ration::cli {

// True if an option names a device to limit, in which case it matters which devices exist.
bool names_devices(const RunRequest &request);

// The limits whose device does not exist or is ambiguous. Problem::written holds the option.
std::vector<config::Problem> errors_in_device_limits(const RunRequest &request,
                                                     const std::vector<config::DeviceIdentity> &devices,
                                                     const EnvironmentBlock &environment);

// One sentence for each limit of the process or its groups that exceeds the device's size. That size is then the limit.
std::vector<std::string> limits_beyond(const config::Settings &settings, const config::DeviceIdentity &device);

// Logs the errors in device limits, and throws Refusal if there is one. Asks the driver only if an option names a
// device. If no driver answers, the library reports such errors in each process.
void refuse_absent_devices(const RunRequest &request, const EnvironmentBlock &environment);

}  // namespace ration::cli
