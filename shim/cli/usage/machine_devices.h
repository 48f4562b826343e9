// Which number this machine gives to a device. Layer: cli. Threads: one.
#pragma once

#include "cli/usage/process_rows.h"

namespace ration::cli {

// Those of NVIDIA's driver; where it lists none of the devices, those of the simulated machine that the environment
// names, as `ration run --sim` sets it. Of one machine, so that no number has two meanings. That machine is asked once.
void number_known_devices(Usage &usage);

}  // namespace ration::cli
