// Typed slots for NVML's functions: the NVML rows of hook_table.inc and every row of used_nvml.inc.
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

  // Looks every function up in the library's handle. Idempotent.
  void resolve(void *handle, void *(*look_up)(void *, const char *));
};

// The library that the program loaded.
extern NvmlFunctions real_nvml;

}  // namespace ration::driver
