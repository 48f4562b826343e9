// Typed slots for NVML's functions, one for each NVML row of hook_table.inc and each row of used_nvml.inc.
// Layer: driver (a leaf). Threads: slots are only filled; racing threads store the same values.
#pragma once

#include "driver/functions.h"
#include "driver/nvml_abi.h"

namespace ration::driver {

inline constexpr unsigned kNvmlHookCount = 0
#define RATION_NVML_HOOK(symbol, parameters) +1
#include "hook_table.inc"
    ;

struct NvmlFunctions {
#define RATION_NVML_HOOK(symbol, parameters) Slot<nvmlReturn_t parameters> symbol;
#include "hook_table.inc"
#define RATION_USED_NVML(symbol, parameters) Slot<nvmlReturn_t parameters> symbol;
#include "driver/used_nvml.inc"
#undef RATION_USED_NVML

  // Fills the slots by looking up every function through the library's dlopen handle. Idempotent.
  void resolve(void *handle, void *(*look_up)(void *, const char *));
};

// The functions of the NVML library that the process uses.
extern NvmlFunctions real_nvml;

}  // namespace ration::driver
