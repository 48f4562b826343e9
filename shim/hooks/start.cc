// The core's only export: exchanges function tables with the preload library.
// Layer: hooks. Threads: racing first callers all come through here; everything is idempotent or serialised inside.
#include <dlfcn.h>

#include <algorithm>
#include <iterator>

#include "base/held.h"
#include "driver/nvml.h"
#include "hooks/boundary.h"
#include "hooks/caller.h"
#include "hooks/hooks.h"

namespace ration::hooks {

std::atomic<const RationPreloadAbi *> given_preload{nullptr};

namespace {

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) reinterpret_cast<void *>(&symbol),
void *const bodies[driver::kHookCount] = {
#include "hook_table.inc"
};
#undef RATION_HOOK

#define RATION_NVML_HOOK(symbol, parameters) reinterpret_cast<void *>(&symbol),
void *const nvml_bodies[driver::kNvmlHookCount] = {
#include "hook_table.inc"
};

// Looking up the driver takes the loader's lock, which this thread may hold or wait for: hold no lock of ours here.
int begin() {
  if (void *handle = preload_abi()->driver()) {
    driver::real.resolve(handle, preload_abi()->real_dlsym);
  }
  return runtime::Runtime::get() != nullptr ? 1 : 0;
}

void begin_nvml() {
  if (void *handle = preload_abi()->nvml()) {
    driver::real_nvml.resolve(handle, preload_abi()->real_dlsym);
  }
}

bool find_nvml(bool open) {
  void *handle = preload_abi()->nvml();
  if (handle == nullptr && open) {
    handle = preload_abi()->real_dlopen("libnvidia-ml.so.1", RTLD_LAZY);
  }
  if (handle != nullptr) {
    driver::real_nvml.resolve(handle, preload_abi()->real_dlsym);
  }
  return handle != nullptr;
}

constexpr RationCoreAbi core = {RATION_VERSION, bodies,      driver::kHookCount,     &begin,
                                &begin_nvml,    nvml_bodies, driver::kNvmlHookCount, &runtime::end_own_threads};

}  // namespace

bool is_body(const void *function) {
  return std::find(std::begin(bodies), std::end(bodies), function) != std::end(bodies) ||
         std::find(std::begin(nvml_bodies), std::end(nvml_bodies), function) != std::end(nvml_bodies);
}

}  // namespace ration::hooks

extern "C" __attribute__((visibility("default"))) const RationCoreAbi *ration_core_start(
    const RationPreloadAbi *given) {
  using namespace ration;
  if (given == nullptr || given->hook_count != driver::kHookCount) {
    return &hooks::core;  // the preload library sees that the builds differ, and refuses memory
  }
  hooks::given_preload.store(given, std::memory_order_relaxed);
  held::thread_state.store(given->thread, std::memory_order_relaxed);
  runtime::prepare({given->coverage, &hooks::via_of, given->on_own_stack, &hooks::in_interrupted_call,
                    &hooks::find_nvml, given->limit_changes});
  // Pairs with the acquire in the preload library's unknown_names.cc.
  __atomic_store_n(&given->coverage->changed, &runtime::publish_names, __ATOMIC_RELEASE);
  return &hooks::core;
}
