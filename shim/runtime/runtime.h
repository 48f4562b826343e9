// The one object that connects everything. Built at the first CUDA call and never freed.
// Layer: runtime (may include policy, config): settings become options here and nowhere else.
// Threads: any may call get(); a thread that arrives during first use waits. Called from: first use, fork child, exit.
#pragma once

#include <atomic>
#include <cstdint>

#include "core_abi.h"
#include "policy/devices/request.h"

namespace ration::runtime {

struct Assembly;

// The object that serves one family of hooks; valid once Runtime::get() has returned a runtime. Each family has a
// separate variable, so that a hit need not follow pointers through the runtime.
template <class Family>
inline constinit Family *family = nullptr;

class Runtime {
 public:
  // The process's runtime, built if there is none. nullptr if it could not be built; the caller must then fail closed.
  // A forked child gets a new one, because the child must not free or count anything that belongs to the parent.
  static Runtime *get() noexcept {
    Runtime *runtime = existing();
    return runtime != nullptr ? runtime : get_built();
  }
  // The process's runtime; nullptr if there is none. Never builds one.
  static Runtime *existing() noexcept {
    return instance.load(std::memory_order_acquire);  // pairs with the release in get_built()
  }

  // Called in a forked child, where the next get() then builds a new Runtime.
  static void forget() noexcept { instance.store(nullptr, std::memory_order_relaxed); }

  // Writes the log's first line. The line names the devices, so each call tries again until the driver can be asked
  // about them.
  void describe() noexcept;
  bool is_described() const noexcept { return described_.load(std::memory_order_relaxed); }  // may lag behind
  void publish(const RationCoverage &coverage) noexcept;

  // True if the log records the stacks of allocations.
  bool has_stacks() const noexcept { return has_stacks_; }
  // The number of the calling thread's stack in the log. REQUIRES: has_stacks(); the thread holds no lock of Ration's.
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

// What the preloaded library provides to the core: records of the program's actions, and functions that only the
// preloaded library can implement.
struct Reports {
  const RationCoverage *coverage = nullptr;
  events::Via (*via_of)(const void *caller) = nullptr;
  void (*on_own_stack)(void (*function)(void *), void *argument) = nullptr;
  // True if the caller runs in a signal handler that interrupted one of this thread's hooked calls, which may hold
  // locks.
  bool (*in_interrupted_call)() noexcept = nullptr;
  // Fills NVML's slots if the process has loaded NVML. With `open`, may load NVML.
  bool (*find_nvml)(bool open) = nullptr;
  // How often the program has set its resource limits.
  const std::uint32_t *limit_changes = nullptr;
};
// Called by the core's start, before the first get().
void prepare(const Reports &reports);

// Called after a name was added to the coverage. Passes the name on to the summary of `ration run` as soon as there is
// a runtime.
void publish_names() noexcept;
// Writes a diagnostic line that says which function the program gets for a name.
void explain_look_up(const char *name, int version, const char *answer) noexcept;
// Ends the core's own threads. Called when the main thread ends before other threads, because the process then ends
// with its last thread, which must not be one of ours. Returns once they have ended, or after a time limit.
void end_own_threads() noexcept;

}  // namespace ration::runtime
