// The front's own parts: real loader functions, the driver it found, and the entries that programs call.
// Layer: front (libc only, no C++ runtime, no constructor, no destructor).
// Threads: everything is constant-initialised; racing threads store equal values.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../core_abi.h"

extern "C" {
// What the three loader trampolines hand to their resolvers; offsets are fixed in trampolines_*.S.
struct RationCall {
  uintptr_t first;
  uintptr_t second;
  uintptr_t third;
  uintptr_t caller;  // return address of the program's own call
  void *result;      // the answer, when the resolver returns 1
  void *target;      // where to jump with (first, second, third), when it returns 0
};

__attribute__((visibility("hidden"))) extern void *ration_slots[];  // the driver's hooks, then NVML's
__attribute__((visibility("hidden"))) void ration_dlsym_entry();
__attribute__((visibility("hidden"))) void ration_dlvsym_entry();
__attribute__((visibility("hidden"))) void ration_dlopen_entry();
}

namespace ration::front {

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
};

// The next definitions after us in search order, so that other preloads stay in the chain.
const Loader &real();

// Call after look-ups of ours that may have failed: the program's dlerror() must not tell of them.
void leave_no_error();

// The process's libcuda, without loading it; nullptr while there is none.
void *loaded_driver();
// The same, loading it if need be: a program can reach a hook before any driver is there (weak references).
void *any_driver();

// Our export of a hook, in table order.
extern void *const entries[kHookCount];
extern const char *const symbols[kHookCount];

// The driver's own function behind a hook; one that answers NOT_FOUND where there is none.
void *real_function(unsigned hook);
// What a hook leads to when there is no core: the closed column of the table.
void *closed_target(unsigned hook);
// Whether `address` is one of our exports, of the driver's functions or of NVML's.
bool is_entry(const void *address);

// The handle of a library that is loaded already, by its name or by how its file name begins; nullptr: there is none.
void *loaded_library(const char *name, const char *file_prefix);

// The hook that stands for the driver's function at `address` under `symbol` (nullptr: under any), or kHookCount.
Hook hook_at(void *driver, const void *address, const char *symbol);

// Whether `address` lies in the driver's own object. REQUIRES a hook_at before: it learns the bounds.
bool in_driver(uintptr_t address);

// The libnvidia-ml that the program loaded, which then stays loaded; nullptr while there is none.
void *loaded_nvml();
// NVML's own function behind a hook; one that answers FUNCTION_NOT_FOUND where there is none (yet: `found` is false).
void *real_nvml_function(unsigned hook, bool &found);
// Our export for what `nvml` answered under `symbol`, or nullptr: not a function that we hook.
void *nvml_entry_for(void *nvml, const void *address, const char *symbol);
bool is_nvml_entry(const void *address);

extern RationCoverage coverage;
// For display: two racing threads may count as one, which is cheaper than a locked instruction a look-up.
inline void count(uint64_t &counter) {
  __atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

// Why there is no core, as one line on stderr, with one write(2).
void say(const char *text, const char *detail);

}  // namespace ration::front
