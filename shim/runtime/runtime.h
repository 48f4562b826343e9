// The one object that joins everything, built at the first CUDA call and leaked.
// Layer: runtime (may include policy, config): settings become options here and nowhere else.
// Threads: get() from any; threads that arrive during first use wait. Called from: first use, fork child, exit.
#pragma once

#include <atomic>
#include <cstdint>

#include "core_abi.h"
#include "policy/devices/request.h"

namespace ration::runtime {

struct Assembly;

// The object that serves one family of hooks; valid once Runtime::get() answered. A variable of its own for each, so
// that a hit follows no pointer through the runtime.
template <class Family>
inline constinit Family *family = nullptr;

class Runtime {
 public:
  // The process's runtime, built if need be. nullptr: it could not be built; the caller fails closed. A forked child
  // gets one of its own: nothing of the parent's is the child's to free or to count.
  static Runtime *get() noexcept {
    Runtime *runtime = existing();
    return runtime != nullptr ? runtime : get_built();
  }
  // The same without building it: nullptr where there is none.
  static Runtime *existing() noexcept {
    return instance.load(std::memory_order_acquire);  // pairs with the release in get_built()
  }

  // In a forked child: the next get() builds one of its own.
  static void forget() noexcept { instance.store(nullptr, std::memory_order_relaxed); }

  // Writes the log's first line, which names the devices: tried at each call until the driver can be asked about them.
  void describe() noexcept;
  bool is_described() const noexcept { return described_.load(std::memory_order_relaxed); }  // a late reader: no
  void publish(const RationCoverage &coverage) noexcept;

  // Whether the log has the stacks of allocations.
  bool has_stacks() const noexcept { return has_stacks_; }
  // The calling thread's. REQUIRES: has_stacks(); the thread holds nothing.
  std::uint64_t stack_here() noexcept;

 private:
  friend struct Builder;
  explicit Runtime(Assembly &assembly);
  static Runtime *get_built() noexcept;

  static inline constinit std::atomic<Runtime *> instance{nullptr};
  Assembly &assembly_;
  const bool has_stacks_;
  std::atomic<bool> described_{false};
};

// What the program asked for, which `end` reports, ways to tell the program's calls apart and to know what a signal
// interrupted, and a way to call with much stack.
struct Reports {
  const RationCoverage *coverage = nullptr;
  events::Via (*via_of)(const void *caller) = nullptr;
  void (*on_own_stack)(void (*function)(void *), void *argument) = nullptr;
  // Whether this runs in a signal handler that interrupted a call of this thread, which may hold locks.
  bool (*in_interrupted_call)() noexcept = nullptr;
  // Fills the slots of NVML where the process has it, or, with `open`, may load it.
  bool (*find_nvml)(bool open) = nullptr;
  // Counts what the program did to its resource limits.
  const std::uint32_t *limit_changes = nullptr;
};
// Called by the core's start, before the first get().
void prepare(const Reports &reports);

// After a name was added to the coverage: the summary of `ration run` gets it. Before there is a runtime, later.
void publish_names() noexcept;
// What the program gets for a name, in the diagnostics.
void explain_look_up(const char *name, int version, const char *answer) noexcept;
// The main thread ends before others: the process ends with the last of these, so that none may be an own one. Returns
// once they have ended, unless that takes long.
void end_own_threads() noexcept;

}  // namespace ration::runtime
