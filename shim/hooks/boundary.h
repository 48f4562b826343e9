// The boundary that every hook crosses. It enters the runtime, lets no exception escape, handles a thread's nested
// calls, and calls the one class that serves the hook's family.
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

// The interface that the preloaded library gave the core; set when the core starts, before any hook can run. Relaxed,
// because threads that race to start the core store the same pointer, and hooks run only after a start.
extern std::atomic<const RationPreloadAbi *> given_preload;
inline const RationPreloadAbi *preload_abi() {
  return given_preload.load(std::memory_order_relaxed);
}

// True if `function` is the address of a function that serves one row of the hook table.
bool is_body(const void *function);

// True if the caller runs in a signal handler that interrupted this thread inside a hook's call.
bool in_interrupted_call() noexcept;

// Marks a hook's call while the call lasts. The program may leave a call without returning, by longjmp from a signal
// handler or a callback, or by a switch to another stack. The mark of such a call stays, so a mark does not prove that
// its call is still running.
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
  // True if this call was made during another hook's call: by the driver through its exports, or by a callback.
  bool nested() const { return nested_; }
  RationThread *thread() const { return thread_; }

 private:
  void enter_beside() noexcept;

  RationThread *const thread_;
  const void *before_;  // the value that `thread_->call` gets back after this call
  bool nested_ = false;
};

enum class Crossing {
  allocating,  // takes device memory; fails closed. Nested calls go to the driver; the outer one counts their bytes
  counting,    // takes memory that is recorded but not limited. If nested or without a runtime, only the driver answers
  forwarding,  // returns or reports memory; fails open. Nested calls also consult our records
};

// Leaves cancellation on, because two calls to switch it off and on would slow DeviceMemory's hits too much. Its slow
// paths turn cancellation off.
struct NotSwitched {
  explicit NotSwitched(RationThread * /*thread*/) {}
};
template <class Family>
using Uncancelled = std::conditional_t<std::is_same_v<Family, policy::DeviceMemory>, NotSwitched, CancellationOff>;

// Records the stack of a call that takes memory, for the log. The thread keeps the stack's number until the call ends.
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

// `body` is called with the family's object; `real_call` passes the program's call to the driver unchanged.
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
    return CUDA_ERROR_OUT_OF_MEMORY;  // host memory ran out; all of these calls document this code
  }
}

// The answer of a hook whose function the driver lacks. Only a program linked directly to the function gets this
// answer. Without Ration, the loader would have failed to find the function.
inline constexpr CUresult kAbsent = CUDA_ERROR_NOT_FOUND;

// Runs the hook of one driver function that the program called with `arguments`. `body` is called with the family's
// object and a callable that makes the driver's call with these arguments.
template <class Family, class Slot, class Body, class... Arguments>
CUresult forwarding(const Slot &slot, const Body &body, Arguments... arguments) noexcept {
  if (!slot.present()) {
    return kAbsent;
  }
  const auto call = [&] { return slot(arguments...); };
  return cross<Crossing::forwarding, Family>(call, [&](Family &family) { return body(family, call); });
}

// The numeric value of an address or handle, which may be a pointer or a number.
template <class Value>
CUdeviceptr number_of(Value value) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    return value;
  }
}

// What a refusal for lack of memory does to the program's output variable, in the driver and in Ration alike. On H100
// and H200, driver 580.159, a refused cuMemAlloc sets the address to 0, even for zero bytes or without a context, while
// a refused cuMemCreate leaves the handle as it was.
enum class Refused { zeroes, leaves };

// Runs a hook whose driver function writes one address or handle. `place` points to the program's variable; `call`
// makes the driver's call, which writes to the pointer passed to `call`. If the driver refuses, `*place` gets what the
// driver wrote; if Ration refuses, `kRefused` decides. `body` is called with the family's object and an Act that makes
// the call and reports that `bytes` bytes were obtained.
template <Crossing kCrossing, class Family, Refused kRefused, class Place, class Call, class Body>
CUresult obtaining(Place *place, std::uint64_t bytes, const Call &call, const Body &body) noexcept {
  // Whether a failed call stores `left`. If not, *place is untouched, since it may be read-only or another thread's.
  bool writes = kRefused == Refused::zeroes;
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

// Runs the hook of one driver function that takes memory and is called with `place` and `rest`. A null `place` goes to
// the driver, which refuses it.
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
