// The hooked functions of NVML. They are found by name in the library that the program loaded (it is never loaded from
// here) and recognised by address, so that a wrapper's function of the same name is not replaced.
// Layer: preload. Threads: no lock; racing threads store equal values.
#include "../driver/nvml_abi.h"
#include "link_map.h"
#include "loaded_objects.h"
#include "preload.h"

#define RATION_NVML_HOOK(symbol, parameters) \
  extern "C" __attribute__((visibility("hidden"))) void ration_entry_##symbol();
#include "hook_table.inc"

namespace ration::preload {
namespace {

#define RATION_NVML_HOOK(symbol, parameters) reinterpret_cast<void *>(&ration_entry_##symbol),
void *const nvml_entries[kNvmlHookCount] = {
#include "hook_table.inc"
};

#define RATION_NVML_HOOK(symbol, parameters) #symbol,
constexpr const char *nvml_symbols[kNvmlHookCount] = {
#include "hook_table.inc"
};

Library nvml_library{"libnvidia-ml.so.1", "libnvidia-ml.so", nullptr, 0};

nvmlReturn_t absent() {
  return NVML_ERROR_FUNCTION_NOT_FOUND;
}

}  // namespace

void *loaded_nvml() {
  return loaded_library(nvml_library);
}

void *found_nvml() {
  return found_library(nvml_library);
}

void *real_nvml_function(unsigned hook, bool &found) {
  void *nvml = loaded_nvml();
  void *function = nvml != nullptr ? real().dlsym(nvml, nvml_symbols[hook]) : nullptr;
  found = function != nullptr;
  return found ? function : reinterpret_cast<void *>(&absent);
}

void *nvml_entry_for(void *nvml, const void *address, const char *symbol) {
  for (unsigned hook = 0; hook < kNvmlHookCount; ++hook) {
    if (same(nvml_symbols[hook], symbol)) {
      if (real().dlsym(nvml, symbol) == address) {
        return nvml_entries[hook];
      }
      leave_no_error();  // the program's own look-up succeeded
      return nullptr;
    }
  }
  return nullptr;
}

bool is_nvml_entry(const void *address) {
  for (const void *entry : nvml_entries) {
    if (entry == address) {
      return true;
    }
  }
  return false;
}

}  // namespace ration::preload
