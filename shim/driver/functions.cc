#include "driver/functions.h"

#include <cstring>

#include "driver/nvml.h"

namespace ration::driver {

Functions real;

const Identity identities[kHookCount] = {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) {#symbol, #name, since, Stream::stream},
#include "hook_table.inc"
#undef RATION_HOOK
};

void Functions::resolve(void *handle, void *(*look_up)(void *, const char *)) {
  // Without an export of the driver, keeps a slot that adopt() filled.
  const auto fill = [&](auto &slot, const char *name) {
    if (void *address = look_up(handle, name)) {
      slot.set(address);
    }
  };
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) fill(symbol, #symbol);
#include "hook_table.inc"
#undef RATION_HOOK
#define RATION_USED(symbol, parameters) fill(symbol, #symbol);
#include "driver/used_functions.inc"
#undef RATION_USED
}

void *Functions::hooked(Hook hook) const {
  switch (hook) {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) \
  case Hook::symbol:                                                       \
    return symbol.get();
#include "hook_table.inc"
#undef RATION_HOOK
  }
  return nullptr;
}

void Functions::adopt(Hook hook, void *address) {
  switch (hook) {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) \
  case Hook::symbol:                                                       \
    if (!symbol.present()) {                                               \
      symbol.set(address);                                                 \
    }                                                                      \
    break;
#include "hook_table.inc"
#undef RATION_HOOK
  }
}

const char *Functions::missing_required() const {
  enum class Need { required, optional };
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) \
  if (Need::need == Need::required && !symbol.present()) {                 \
    return #symbol;                                                        \
  }
#include "hook_table.inc"
#undef RATION_HOOK
  return nullptr;
}

NamedHook by_name(const char *name, int version, cuuint64_t flags) {
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  NamedHook answer{Match::none, Hook{}};
  for (unsigned row = 0; row < kHookCount; ++row) {
    const Identity &identity = identities[row];
    if (std::strcmp(identity.name, name) != 0 || identity.since > version ||
        (identity.stream == Stream::per_thread && !per_thread)) {
      continue;
    }
    // Rows with the same name are in ascending order of version; for the same version, the per-thread row follows the
    // plain one.
    const bool is_known = version <= kKnownVersion && knows(flags);
    answer = {is_known ? Match::known : Match::unknown_version, static_cast<Hook>(row)};
  }
  return answer;
}

NamedHook by_address(const void *address, const char *name, int version, cuuint64_t flags) {
  const NamedHook meant = by_name(name, version, flags);
  NamedHook answer{Match::none, Hook{}};
  for (unsigned row = 0; row < kHookCount; ++row) {
    const auto hook = static_cast<Hook>(row);
    if (real.hooked(hook) != address || std::strcmp(identities[row].name, name) != 0) {
      continue;
    }
    if (answer.match == Match::none || (meant.match != Match::none && meant.hook == hook)) {
      answer = {Match::known, hook};
    }
  }
  return answer;
}

NvmlFunctions real_nvml;

void NvmlFunctions::resolve(void *handle, void *(*look_up)(void *, const char *)) {
#define RATION_NVML_HOOK(symbol, parameters) symbol.set(look_up(handle, #symbol));
#include "hook_table.inc"
#define RATION_USED_NVML(symbol, parameters) symbol.set(look_up(handle, #symbol));
#include "driver/used_nvml.inc"
#undef RATION_USED_NVML
}

}  // namespace ration::driver
