// The machine's devices as NVML lists them, for the NVML hooks. Layer: hooks. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "driver/nvml_abi.h"
#include "runtime/nvml_memory.h"

namespace ration::hooks {

// The device's UUID; empty if NVML does not answer.
std::string uuid_of(nvmlDevice_t device);

// The machine's GPUs, sorted by bus ID.
std::vector<runtime::ListedGpu> gpus_by_bus();

}  // namespace ration::hooks
