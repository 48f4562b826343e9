// Every hook crosses here: into the runtime, noexcept, once per thread, to the one class that serves its family.
// Layer: hooks (may include runtime, driver). Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "base/cancellation.h"
#include "core_abi.h"
#include "driver/functions.h"
#include "runtime/runtime.h"

namespace ration::policy {
class DeviceMemory;
}

namespace ration::hooks {

// What the preload gave the core; set by the core's start before any hook can run. Racing first callers set the same
// pointer, and a hook is reached only after a start of its own process: relaxed.
extern std::atomic<const RationPreloadAbi *> given_preload;
inline const RationPreloadAbi *preload_abi() {
  return given_preload.load(std::memory_order_relaxed);
}

// Whether a function begins here that serves one row of the hook table.
bool is_body(const void *function);

// Whether a signal's handler runs here that interrupted a call of a hook by this thread.
bool in_interrupted_call() noexcept;

// A call of a hook while it lasts. The program may leave a call without returning from it: by longjmp, from a signal
// handler or a callback, or for another stack. What such a call marked stays, so a mark alone proves nothing.
// Design: design/interception.md#nested-calls
class Inside {
 public:
  Inside() : thread_(preload_abi()->thread()), before_(thread_->call) {
    if (before_ == nullptr) [[likely]] {
      thread_->call = this;
    } else {
      enter_beside();
    }
  }
  ~Inside() { thread_->call = before_; }
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;
  // The call came from inside a call of ours: the driver through its own exports, or a callback of it.
  bool nested() const { return nested_; }
  RationThread *thread() const { return thread_; }

 private:
  void enter_beside() noexcept;

  RationThread *const thread_;
  const void *before_;  // what the mark says once this call is over; of a nested call, what it says meanwhile, too
  bool nested_ = false;
};

enum class Crossing {
  allocating,  // takes device memory: fails closed. Nested calls are the driver's, their bytes the outer call's
  counting,    // takes what is recorded and not limited: without a runtime, and nested, it is the driver's
  forwarding,  // returns or reports memory: fails open, and nested calls too consult the books
};

// The family whose hits are too short for two more calls: it switches cancellation off where it is slow.
struct NotSwitched {
  explicit NotSwitched(RationThread * /*thread*/) {}
};
template <class Family>
using Uncancelled = std::conditional_t<std::is_same_v<Family, policy::DeviceMemory>, NotSwitched, CancellationOff>;

// The stack of a call that takes memory, for the log, while the call lasts.
class StackOfCall {
 public:
  StackOfCall(runtime::Runtime &runtime, RationThread *thread) : thread_(runtime.has_stacks() ? thread : nullptr) {
    if (thread_ != nullptr) [[unlikely]] {
      thread_->stack = runtime.stack_here();
    }
  }
  ~StackOfCall() {
    if (thread_ != nullptr) [[unlikely]] {
      thread_->stack = 0;
    }
  }
  StackOfCall(const StackOfCall &) = delete;
  StackOfCall &operator=(const StackOfCall &) = delete;

 private:
  RationThread *const thread_;
};
struct NoStack {
  NoStack(runtime::Runtime & /*runtime*/, RationThread * /*thread*/) {}
};
template <Crossing kCrossing>
using Stack = std::conditional_t<kCrossing == Crossing::forwarding, NoStack, StackOfCall>;

// `body` gets the family's object; `real_call` is the driver's own answer to the program's call.
template <Crossing kCrossing, class Family, class Real, class Body>
CUresult cross(const Real &real_call, const Body &body) noexcept {
  const Inside inside;
  if (kCrossing != Crossing::forwarding && inside.nested()) {
    return real_call();
  }
  runtime::Runtime *runtime = runtime::Runtime::get();
  if (runtime == nullptr) {
    return kCrossing == Crossing::allocating ? CUDA_ERROR_OUT_OF_MEMORY : real_call();
  }
  if (!runtime->is_described() && !inside.nested()) [[unlikely]] {
    runtime->describe();
  }
  [[maybe_unused]] const Stack<kCrossing> stack(*runtime, inside.thread());
  [[maybe_unused]] const Uncancelled<Family> uncancelled(inside.thread());
  try {
    return body(*runtime::family<Family>);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;  // the host's memory ran out: documented for every one of these calls
  }
}

// A hook whose function the driver lacks is reached by direct links only; it answers as the loader would have.
inline constexpr CUresult kAbsent = CUDA_ERROR_NOT_FOUND;

// The hook of one driver function, called with the program's own `arguments`. `body` gets the family's object and a
// callable that makes this call.
template <class Family, class Slot, class Body, class... Arguments>
CUresult forwarding(const Slot &slot, const Body &body, Arguments... arguments) noexcept {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto call = [&] { return slot(arguments...); };
  return cross<Crossing::forwarding, Family>(call, [&](Family &family) { return body(family, call); });
}

// Addresses and handles are pointers or numbers, as their type has it.
template <class Value>
CUdeviceptr number_of(Value value) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    return value;
  }
}

// What the driver leaves in the program's place when it refuses for want of memory, and so do we. H100, H200, driver
// 580.159: a refused cuMemAlloc sets the address to 0, for zero bytes and without a context, too; cuMemCreate leaves
// the handle as it was.
enum class Refused { zeroes, leaves };

// For a driver call that writes one address or handle: `call` makes it for a given place, the program's or one of ours.
// A refusal of the driver leaves in the program's place what the driver wrote; one of ours leaves what `kRefused` says.
// `body` gets the family's object and the call as an Act that obtains `bytes`.
template <Crossing kCrossing, class Family, Refused kRefused, class Place, class Call, class Body>
CUresult obtaining(Place *place, std::uint64_t bytes, const Call &call, const Body &body) noexcept {
  bool writes = kRefused == Refused::zeroes;  // a refusal, `left`; else the place may be read-only, or another thread's
  Place left{};
  const auto act = [&](policy::Obtained &got) {
    const Place before = *place;
    Place obtained = before;
    const CUresult result = call(&obtained);
    const bool refused = result != CUDA_SUCCESS;
    writes = refused ? obtained != before : kRefused == Refused::zeroes;
    left = refused ? obtained : Place{};
    got = {number_of(obtained), bytes};
    return result;
  };
  const auto real_call = [&] {
    writes = false;
    return call(place);
  };
  const CUresult result =
      cross<kCrossing, Family>(real_call, [&](Family &family) { return body(family, policy::Act(act)); });
  if (result != CUDA_SUCCESS && writes) [[unlikely]] {
    *place = left;
  }
  return result;
}

// The hook of one driver function that takes memory: `slot` with `place` and `rest`. A null place is the driver's to
// refuse.
template <class Family, Refused kRefused = Refused::zeroes, class Slot, class Place, class Body, class... Rest>
CUresult allocating(const Slot &slot, std::uint64_t bytes, const Body &body, Place *place, Rest... rest) noexcept {
  if (!slot.present()) {
    return kAbsent;
  }
  if (place == nullptr) {
    return slot(place, rest...);
  }
  return obtaining<Crossing::allocating, Family, kRefused>(
      place, bytes, [&](Place *to) { return slot(to, rest...); }, body);
}

}  // namespace ration::hooks
