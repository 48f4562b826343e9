// Limits among the options of `ration run` that are for devices which the command will not have. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "cli/base/verbs.h"
#include "cli/launch/environment_block.h"
#include "config/problem.h"
#include "config/settings.h"

namespace ration::cli {

// Whether an option limits a device by its name, so that it matters which there are.
bool names_devices(const RunRequest &request);

// Limits that are for no device, or for which of several is not clear. `written` is the option.
std::vector<config::Problem> errors_in_device_limits(const RunRequest &request,
                                                     const std::vector<config::DeviceIdentity> &devices,
                                                     const EnvironmentBlock &environment);

// Sentences about limits of the process and of its groups that are larger than the device, which then is the limit.
std::vector<std::string> limits_beyond(const config::Settings &settings, const config::DeviceIdentity &device);

// Logs them; throws Refusal where there is one. Asks the driver only where an option names a device. Where none
// answers, the library says it in each process.
void refuse_absent_devices(const RunRequest &request, const EnvironmentBlock &environment);

}  // namespace ration::cli
