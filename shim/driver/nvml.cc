#include "driver/nvml.h"

namespace ration::driver {

NvmlFunctions real_nvml;

void NvmlFunctions::resolve(void *handle, void *(*look_up)(void *, const char *)) {
#define RATION_NVML_HOOK(symbol, parameters) symbol.set(look_up(handle, #symbol));
#include "hook_table.inc"
#define RATION_USED_NVML(symbol, parameters) symbol.set(look_up(handle, #symbol));
#include "driver/used_nvml.inc"
#undef RATION_USED_NVML
}

}  // namespace ration::driver
