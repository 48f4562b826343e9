// A core that wraps the real one and leaves out the hook that LEFT_OUT names: calls of that function reach the driver
// as if it had no row in the hook table. Layer: core_abi.h. Threads: racing first callers write the same values.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core_abi.h"

namespace {

constexpr const char *kSymbols[] = {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) #symbol,
#include "hook_table.inc"
#undef RATION_HOOK
};
constexpr unsigned kHooks = sizeof(kSymbols) / sizeof(kSymbols[0]);

void *bodies[kHooks];
RationCoreAbi core;
const RationPreloadAbi *preload = nullptr;
const RationCoreAbi *whole = nullptr;

// Called once the driver's real functions can be looked up.
int begin() {
  const char *const named = getenv("LEFT_OUT");
  for (unsigned i = 0; i < kHooks; ++i) {
    const bool left_out = named != nullptr && strcmp(named, kSymbols[i]) == 0;
    void *const real = left_out ? preload->real_dlsym(preload->driver(), kSymbols[i]) : nullptr;
    bodies[i] = real != nullptr ? real : whole->bodies[i];  // a function that the driver lacks cannot be left out
  }
  return whole->begin();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const RationCoreAbi *ration_core_start(const RationPreloadAbi *abi) {
  void *const file = abi->real_dlopen(WHOLE_CORE, RTLD_NOW | RTLD_LOCAL);
  void *const start = file != nullptr ? abi->real_dlsym(file, "ration_core_start") : nullptr;
  whole = start != nullptr ? reinterpret_cast<ration_core_start_t>(start)(abi) : nullptr;
  if (whole == nullptr || whole->hook_count != kHooks) {
    return nullptr;
  }
  preload = abi;
  core = *whole;
  core.bodies = bodies;
  core.begin = &begin;
  return &core;
}
