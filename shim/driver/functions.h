// Typed slots for the driver's functions, one for each row of hook_table.inc and of used_functions.inc.
// Layer: driver (a leaf). Threads: slots are filled before the first hook runs; later, adopt() may fill an empty slot
// once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "driver/abi.h"
#include "driver/array_abi.h"
#include "driver/copy_abi.h"
#include "driver/graph_abi.h"
#include "driver/launch_abi.h"
#include "driver/newer_abi.h"

namespace ration::driver {

// The address of one driver function; null if the driver does not have it. A call REQUIRES present().
template <class Signature>
class Slot;

template <class Result, class... Parameters>
class Slot<Result(Parameters...)> {
 public:
  using Function = Result (*)(Parameters...);

  constexpr Slot() = default;
  // Relaxed loads suffice: a slot is either published together with the object through which the hooks are reached, or
  // holds a function pointer that depends on no other memory.
  bool present() const { return address_.load(std::memory_order_relaxed) != nullptr; }
  Result operator()(Parameters... arguments) const { return address_.load(std::memory_order_relaxed)(arguments...); }
  void set(void *address) { address_.store(reinterpret_cast<Function>(address), std::memory_order_relaxed); }
  void *get() const { return reinterpret_cast<void *>(address_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<Function> address_{nullptr};
};

// The rows of hook_table.inc, in order.
enum class Hook : unsigned {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) symbol,
#include "hook_table.inc"
#undef RATION_HOOK
};

inline constexpr unsigned kHookCount = 0
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) +1
#include "hook_table.inc"
#undef RATION_HOOK
    ;

struct Functions {
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) Slot<CUresult parameters> symbol;
#include "hook_table.inc"
#undef RATION_HOOK
#define RATION_USED(symbol, parameters) Slot<CUresult parameters> symbol;
#include "driver/used_functions.inc"
#undef RATION_USED

  // Fills the slots by looking up every function through the driver's dlopen handle. Idempotent, so threads may race.
  void resolve(void *handle, void *(*look_up)(void *, const char *));
  // The driver's own function for a row, or nullptr.
  void *hooked(Hook hook) const;
  // Fills the slot of a function that the driver does not export, with the address that cuGetProcAddress returned.
  void adopt(Hook hook, void *address);
  // The name of the first required function that the driver lacks, or nullptr.
  const char *missing_required() const;
};

// The functions of the driver that this process uses.
extern Functions real;

// The properties by which cuGetProcAddress identifies a row.
enum class Stream : std::uint8_t { legacy, per_thread };
struct Identity {
  const char *symbol;
  const char *name;
  int since;
  Stream stream;
};
extern const Identity identities[kHookCount];

// The newest CUDA version whose ABIs the table has; a later version may have changed a signature.
inline constexpr int kKnownVersion = 13050;

// Whether the table covers every kind of stream that these flags select.
constexpr bool knows(cuuint64_t flags) {
  constexpr cuuint64_t kKnown =
      cuuint64_t{CU_GET_PROC_ADDRESS_LEGACY_STREAM} | cuuint64_t{CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
  return (flags & ~kKnown) == 0;
}

enum class Match { none, known, unknown_version };
struct NamedHook {
  Match match;
  Hook hook;
};
// The row that cuGetProcAddress selects for (name, version, flags): the newest ABI up to `version`. The per-thread flag
// selects a per-thread row if there is one, else the plain row (Driver API manual, "Driver Entry Point Access"). If
// knows(flags) is false, the match is unknown_version.
NamedHook by_name(const char *name, int version, cuuint64_t flags);

// The row of the address that the driver returned for (name, version, flags). If several exports share the address,
// by_name() decides.
NamedHook by_address(const void *address, const char *name, int version, cuuint64_t flags);

}  // namespace ration::driver
