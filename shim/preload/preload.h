// Declarations shared within libration.so: the loader's real functions, the driver that was found, and the exports that
// programs call.
// Layer: preload (libc only, no C++ runtime, no constructor, no destructor).
// Threads: everything is constant-initialised; racing threads store equal values.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "../core_abi.h"

extern "C" {
// The values that the four loader trampolines pass to their resolvers. The offsets are fixed in trampolines_*.S.
struct RationCall {
  uintptr_t first;
  uintptr_t second;
  uintptr_t third;
  uintptr_t caller;  // return address of the program's call
  void *result;      // the answer if the resolver returns 1
  void *target;      // the jump target, with (first, second, third), if the resolver returns 0
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

// The loader's functions: the next definitions after this library in search order, so that other preloaded libraries
// stay in the chain. They are looked up, not linked. Before glibc 2.34, they were in libdl. If we linked against libdl,
// a program that brings its own glibc would get the system's libdl and end at once.
// Design: design/interception.md#only-libc
const Loader &real();

// True if RATION_DISABLE was 1 at the first call of this function, or another copy of this library is active. This
// function must work without the core.
bool disabled();

// Call this after our own look-ups that may have failed, because the program's dlerror() must not report them.
void leave_no_error();

// The libcuda that the process has loaded; nullptr if there is none yet. Never loads it.
void *loaded_driver();
// The handle that an earlier call of loaded_driver() found, or nullptr.
void *found_driver();
// Like loaded_driver(), but loads the driver if necessary, because a program with weak references can call a hook
// before a driver is loaded.
void *any_driver();

// Our export for each hook, in table order.
extern void *const entries[kHookCount];
extern const char *const symbols[kHookCount];

// The driver's own function for a hook, or, if the driver has none, a function that returns NOT_FOUND.
void *real_function(unsigned hook);
// The function that a hook jumps to when there is no core, as the `closed` column of the table says.
void *closed_target(unsigned hook);
// True if `address` is one of our exports, for the driver or for NVML.
bool is_entry(const void *address);

// The hook for the driver's function at `address` with the name `symbol` (nullptr: any name); kHookCount: none.
Hook hook_at(void *driver, const void *address, const char *symbol);

// True if `address` is in the driver's own object. REQUIRES an earlier hook_at(), which finds the object's bounds.
bool in_driver(uintptr_t address);

// The libnvidia-ml that the program loaded, which from then on stays loaded; nullptr if there is none yet.
// Design: design/nvml.md#the-library-of-the-program
void *loaded_nvml();
// The handle that an earlier call of loaded_nvml() found, or nullptr.
void *found_nvml();
// NVML's own function for a hook. If it does not exist yet, sets `found` to false and returns a function that returns
// FUNCTION_NOT_FOUND.
void *real_nvml_function(unsigned hook, bool &found);
// Our export that replaces `nvml`'s function `symbol`, which is at `address`; nullptr if it has no hook.
void *nvml_entry_for(void *nvml, const void *address, const char *symbol);
bool is_nvml_entry(const void *address);

extern RationCoverage coverage;
extern uint32_t limit_changes;  // size_limits.cc
// For display only. Two racing increments may count as one; this is cheaper than a locked instruction at each look-up.
inline void count(uint64_t &counter) {
  __atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

// nullptr if no core has been loaded.
const RationCoreAbi *started_core();

// Writes one line to stderr by one write(2): why there is no core, and how long allocations are refused (`how_long`).
void say(const char *text, const char *detail, const char *how_long);

}  // namespace ration::preload
