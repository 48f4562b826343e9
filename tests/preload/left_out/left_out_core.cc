// A core that stands before the whole one and leaves out the hook that LEFT_OUT names: calls of that function go to the
// driver as if there were no row for it. Layer: door.h. Threads: racing first callers write the same.
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
const RationPreloadAbi *given = nullptr;
const RationCoreAbi *whole = nullptr;

// The real functions are known from here on.
int begin() {
  const char *const named = getenv("LEFT_OUT");
  for (unsigned i = 0; i < kHooks; ++i) {
    const bool left_out = named != nullptr && strcmp(named, kSymbols[i]) == 0;
    void *const real = left_out ? given->real_dlsym(given->driver(), kSymbols[i]) : nullptr;
    bodies[i] = real != nullptr ? real : whole->bodies[i];  // what the driver lacks cannot be left out
  }
  return whole->begin();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const RationCoreAbi *ration_core_start(const RationPreloadAbi *door) {
  void *const file = door->real_dlopen(WHOLE_CORE, RTLD_NOW | RTLD_LOCAL);
  void *const start = file != nullptr ? door->real_dlsym(file, "ration_core_start") : nullptr;
  whole = start != nullptr ? reinterpret_cast<ration_core_start_t>(start)(door) : nullptr;
  if (whole == nullptr || whole->hook_count != kHooks) {
    return nullptr;
  }
  given = door;
  core = *whole;
  core.bodies = bodies;
  core.begin = &begin;
  return &core;
}
