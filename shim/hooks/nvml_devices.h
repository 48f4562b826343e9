// The devices of the machine as NVML lists them, for its hooks. Layer: hooks. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "driver/nvml_abi.h"
#include "runtime/nvml_memory.h"

namespace ration::hooks {

// Empty: NVML does not say.
std::string uuid_of(nvmlDevice_t device);

// In the order of their bus ids.
std::vector<runtime::ListedGpu> gpus_by_bus();

}  // namespace ration::hooks
