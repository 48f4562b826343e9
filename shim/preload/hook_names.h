// Checks whether a name belongs to a hooked function of the driver or of NVML.
// Layer: preload. Threads: any; constant.
#pragma once

namespace ration::preload {

bool is_hooked(const char *name);

}  // namespace ration::preload
