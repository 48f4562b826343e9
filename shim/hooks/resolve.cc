// cuGetProcAddress in both versions: asks the driver's function first, then replaces functions that have a hook. A
// runtime makes all its look-ups through the pointer that this function returned for its own name.
// Layer: hooks. Threads: any; touches no lock.
#include <cstdio>

#include "base/asked_names.h"
#include "hooks/boundary.h"
#include "hooks/caller.h"
#include "hooks/hooks.h"
#include "hooks/unknown_capture.h"
#include "policy/calls/device_reach.h"

using ration::driver::Match;
using ration::driver::NamedHook;
using ration::driver::real;

namespace {

void count(std::uint64_t &counter) {
  __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
}

void note(RationNames &names, const char *text) {
  if (ration::note_name(names, text)) {
    ration::runtime::publish_names();
  }
}

// Notes a hooked function that was asked for in a version for which the table has no ABI, or with an unknown flag.
void note_newer(RationCoverage &coverage, const char *name, int version, cuuint64_t flags) {
  count(coverage.unknown_versions);
  char text[sizeof(RationName::text)];
  if (ration::driver::knows(flags)) {
    std::snprintf(text, sizeof(text), "%s@%d", name, version);
  } else {
    std::snprintf(text, sizeof(text), "%s@%d/%#llx", name, version, static_cast<unsigned long long>(flags));
  }
  note(coverage.newer, text);
}

// Notes that the program gets a driver function whose work may use another device's memory without our seeing it.
void note_unknown(const char *name, int version) {
  if (ration::policy::DeviceReach::is_of_family(name, version) && ration::runtime::Runtime::existing() != nullptr) {
    ration::runtime::family<ration::policy::DeviceReach>->note_unknown();
  }
}

// Replaces the driver's function by our export. Return code and status stay the driver's; a name that the driver lacks
// is not answered.
void swap(const char *name, void **function, int version, cuuint64_t flags) {
  NamedHook found = ration::driver::by_address(*function, name, version, flags);
  const auto explain = [&](const char *answer) { ration::runtime::explain_look_up(name, version, answer); };
  if (found.match == Match::none) {
    // The name has a hook but the address is not a known export: decided by the table, if it knows the ABI.
    found = ration::driver::by_name(name, version, flags);
    if (found.match != Match::known) {
      RationCoverage &coverage = *ration::hooks::preload_abi()->coverage;
      if (found.match == Match::unknown_version) {
        note_newer(coverage, name, version, flags);
      } else if (ration::is_unknown_driver_name(name)) {
        note(coverage.unknown_names, name);
      }
      explain(found.match == Match::unknown_version ? "the driver's, in a version without a hook" : "the driver's");
      note_unknown(name, version);
      if (ration::hooks::may_begin_capture(name)) {
        *function = ration::hooks::announcing(name, *function);
      }
      return;
    }
    real.adopt(found.hook, *function);
  }
  count(ration::hooks::preload_abi()->coverage->get_proc_address);
  explain("hooked");
  *function = ration::hooks::preload_abi()->entries[static_cast<unsigned>(found.hook)];
}

template <class Act>
CUresult resolve(const Act &act, const char *symbol, void **function, int version, cuuint64_t flags,
                 const void *caller) noexcept {
  // In many processes this is the first CUDA call, so the log begins here.
  ration::runtime::Runtime::get();
  const CUresult result = act();
  if (result == CUDA_SUCCESS && symbol != nullptr && function != nullptr && *function != nullptr) {
    swap(symbol, function, version, flags);
  }
  // The empty name in version 0 is how NVIDIA's runtime opens its look-ups (observed with libcudart 13.0).
  if (symbol != nullptr && *symbol == '\0' && version == 0) {
    ration::hooks::note_runtime(caller);
  }
  return result;
}

}  // namespace

extern "C" CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
  if (!real.cuGetProcAddress.present()) {
    return ration::hooks::kAbsent;
  }
  return resolve([&] { return real.cuGetProcAddress(symbol, pfn, cudaVersion, flags); }, symbol, pfn, cudaVersion,
                 flags, __builtin_return_address(0));
}

extern "C" CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult *symbolStatus) {
  if (!real.cuGetProcAddress_v2.present()) {
    return ration::hooks::kAbsent;
  }
  return resolve([&] { return real.cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus); }, symbol, pfn,
                 cudaVersion, flags, __builtin_return_address(0));
}
