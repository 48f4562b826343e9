// Declares the functions that serve the hooks, under the exact names of the driver's exports. The functions are hidden
// in the core and are reached through the preload library's slots. Layer: hooks.
#pragma once

#include "driver/abi.h"
#include "driver/array_abi.h"
#include "driver/copy_abi.h"
#include "driver/graph_abi.h"
#include "driver/launch_abi.h"
#include "driver/newer_abi.h"
#include "driver/nvml_abi.h"

extern "C" {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) CUresult symbol parameters;
#include "hook_table.inc"
#undef RATION_HOOK
#define RATION_NVML_HOOK(symbol, parameters) nvmlReturn_t symbol parameters;
#include "hook_table.inc"
}

namespace ration::hooks {

// The explicit handle of the stream that a null `stream` means in calls with legacy default-stream semantics (legacy)
// or per-thread semantics (per_thread). Every variant of a call treats the handle as the same stream.
inline CUstream legacy(CUstream stream) {
  return stream != nullptr ? stream : CU_STREAM_LEGACY;
}
inline CUstream per_thread(CUstream stream) {
  return stream != nullptr ? stream : CU_STREAM_PER_THREAD;
}

}  // namespace ration::hooks
