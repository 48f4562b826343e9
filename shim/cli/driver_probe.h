// What the preloaded library says of the driver's devices: its log's first line, from a process that is started for it
// and takes no device memory. Layer: cli.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/run/environment_block.h"
#include "cli/verbs.h"

namespace ration::cli {

// The member `devices` of that line (shim/events/README.md); empty where no driver answers within ten seconds.
nlohmann::json ask_driver(const RunRequest &request, EnvironmentBlock environment);

// The started process: initialises the driver, and asks for a device's size, which meets the library. Returns the exit
// status.
int answer_probe();

}  // namespace ration::cli
