// What the entries do without a core, according to the `closed` column of hook_table.inc. The process runs but gets no
// device memory by any route: a limit that cannot be enforced must not be ignored.
// Layer: preload. Threads: any; no state.
// Design: design/interception.md#without-a-core
#include "../driver/abi.h"
#include "link_map.h"
#include "preload.h"

namespace ration::preload {
namespace {

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) #name,
constexpr const char *names[kHookCount] = {
#include "hook_table.inc"
};
#undef RATION_HOOK

enum class Closed { deny, deny_address, deny_address32, forward, resolve };
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) Closed::closed,
constexpr Closed column[kHookCount] = {
#include "hook_table.inc"
};
#undef RATION_HOOK

CUresult deny() {
  return CUDA_ERROR_OUT_OF_MEMORY;
}
// H100, H200, driver 580.159: a refused cuMemAlloc sets the address to 0.
template <class Address>
CUresult deny_address(Address *address) {
  if (address != nullptr) {
    *address = 0;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult absent() {
  return CUDA_ERROR_NOT_FOUND;
}

// Replaces the driver's answer by our entry, found by address, or also by name for functions that are denied.
void swap(const char *name, void **function) {
  Hook hook = hook_at(any_driver(), *function, nullptr);
  for (unsigned row = 0; row < kHookCount && hook == kHookCount; ++row) {
    if (column[row] != Closed::forward && same(names[row], name)) {
      hook = static_cast<Hook>(row);
    }
  }
  if (hook != kHookCount) {
    *function = entries[hook];
  }
}

CUresult resolve(const char *name, void **function, int version, cuuint64_t flags) {
  const auto real = reinterpret_cast<decltype(&resolve)>(real_function(kHook_cuGetProcAddress));
  const CUresult result = real(name, function, version, flags);
  if (result == CUDA_SUCCESS && name != nullptr && function != nullptr && *function != nullptr) {
    swap(name, function);
  }
  return result;
}

CUresult resolve_v2(const char *name, void **function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *status) {
  const auto real = reinterpret_cast<decltype(&resolve_v2)>(real_function(kHook_cuGetProcAddress_v2));
  const CUresult result = real(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && name != nullptr && function != nullptr && *function != nullptr) {
    swap(name, function);
  }
  return result;
}

}  // namespace

void *real_function(unsigned hook) {
  void *driver = any_driver();
  void *function = driver != nullptr ? real().dlsym(driver, symbols[hook]) : nullptr;
  return function != nullptr ? function : reinterpret_cast<void *>(&absent);
}

void *closed_target(unsigned hook) {
  switch (column[hook]) {
    case Closed::deny:
      return reinterpret_cast<void *>(&deny);
    case Closed::deny_address:
      return reinterpret_cast<void *>(&deny_address<CUdeviceptr>);
    case Closed::deny_address32:
      return reinterpret_cast<void *>(&deny_address<CUdeviceptr_v1>);
    case Closed::resolve:
      return hook == kHook_cuGetProcAddress ? reinterpret_cast<void *>(&resolve)
                                            : reinterpret_cast<void *>(&resolve_v2);
    default:
      return real_function(hook);
  }
}

}  // namespace ration::preload
