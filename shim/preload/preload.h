// Declarations shared in libration.so: real loader functions, the driver found, and the entries that programs call.
// Layer: preload (libc only, no C++ runtime, no constructor, no destructor).
// Threads: everything is constant-initialised; racing threads store equal values.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "../core_abi.h"

extern "C" {
// Passed by the four loader trampolines to their resolvers; offsets are fixed in trampolines_*.S.
struct RationCall {
  uintptr_t first;
  uintptr_t second;
  uintptr_t third;
  uintptr_t caller;  // return address of the program's call
  void *result;      // the answer, when the resolver returns 1
  void *target;      // jump target, with (first, second, third), when it returns 0
};

__attribute__((visibility("hidden"))) extern void *ration_slots[];  // the driver's hooks, then NVML's
__attribute__((visibility("hidden"))) void ration_dlsym_entry();
__attribute__((visibility("hidden"))) void ration_dlvsym_entry();
__attribute__((visibility("hidden"))) void ration_dlopen_entry();
__attribute__((visibility("hidden"))) void ration_dlmopen_entry();
}

namespace ration::preload {

#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) kHook_##symbol,
enum Hook : unsigned {
#include "hook_table.inc"
  kHookCount
};
#undef RATION_HOOK

#define RATION_NVML_HOOK(symbol, parameters) kNvmlHook_##symbol,
enum NvmlHook : unsigned {
#include "hook_table.inc"
  kNvmlHookCount
};

struct Loader {
  void *(*dlopen)(const char *, int);
  void *(*dlsym)(void *, const char *);
  void *(*dlvsym)(void *, const char *, const char *);
  void *(*dlmopen)(Lmid_t, const char *, int);
  int (*dlclose)(void *);
  int (*dladdr)(const void *, Dl_info *);
  int (*dladdr1)(const void *, Dl_info *, void **, int);  // nullptr under musl
};

// The next definitions after this library in search order, so that other preloads stay in the chain. None of them is
// linked: before glibc 2.34 they were in libdl, and a library of glibc's that we need would come from the system where
// a program brings its own glibc, and end that program.
// Design: design/interception.md#only-libc
const Loader &real();

// RATION_DISABLE=1, as it was at the first question, or another copy of this library is at work. It must be readable
// without the core.
bool disabled();

// Call after look-ups of ours that may have failed: the program's dlerror() must not report them.
void leave_no_error();

// The process's libcuda, without loading it; nullptr while there is none.
void *loaded_driver();
// What loaded_driver() found before, if anything.
void *found_driver();
// The same, but loads it if necessary: a program can call a hook before a driver is loaded (weak references).
void *any_driver();

// Our export of a hook, in table order.
extern void *const entries[kHookCount];
extern const char *const symbols[kHookCount];

// The driver's own function of a hook; a function that returns NOT_FOUND where the driver has none.
void *real_function(unsigned hook);
// The target of a hook without a core: the `closed` column of the table.
void *closed_target(unsigned hook);
// Whether `address` is one of our exports, for the driver or for NVML.
bool is_entry(const void *address);

// The hook of the driver's function at `address` under `symbol` (nullptr: under any), or kHookCount.
Hook hook_at(void *driver, const void *address, const char *symbol);

// Whether `address` is in the driver's own object. REQUIRES a hook_at before, which finds the bounds.
bool in_driver(uintptr_t address);

// The libnvidia-ml that the program loaded, which then stays loaded; nullptr while there is none.
// Design: design/nvml.md#the-library-of-the-program
void *loaded_nvml();
// What loaded_nvml() found before, if anything.
void *found_nvml();
// NVML's own function of a hook; a function that returns FUNCTION_NOT_FOUND where there is none (yet: `found` is
// false).
void *real_nvml_function(unsigned hook, bool &found);
// Our export for the answer of `nvml` under `symbol`; nullptr: not a hooked function.
void *nvml_entry_for(void *nvml, const void *address, const char *symbol);
bool is_nvml_entry(const void *address);

extern RationCoverage coverage;
extern uint32_t limit_changes;  // size_limits.cc
// For display: two racing threads may count as one, which is cheaper than a locked instruction at each look-up.
inline void count(uint64_t &counter) {
  __atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

// nullptr: no core has been loaded.
const RationCoreAbi *started_core();

// Writes one line to stderr, with one write(2): why there is no core, and `how_long` allocations are refused.
void say(const char *text, const char *detail, const char *how_long);

}  // namespace ration::preload
