// The call stacks of allocations, identified by their numbers in the log.
// Layer: events (a leaf). Threads: any. A stack that was seen before at the same stack address is recognised by its
// return addresses, without a lock or a system call. Any other stack is read, and is written to the log before its
// number is used.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/lock.h"
#include "events/call_stack.h"
#include "events/loaded_modules.h"
#include "events/python_frames.h"
#include "events/stack_tree.h"

namespace ration::events {

// Design: design/log.md#stacks
class CallStacks {
 public:
  // Writes open objects (json_lines.h) as records, in the given order. Returns false if they may not have been written.
  using Write = FunctionRef<bool(const std::vector<std::string> &)>;

  CallStacks(std::string executable, bool with_python)
      : with_python_(with_python),
        sets_(std::make_unique<Sets>()),
        tree_(std::move(executable)),
        loaded_(std::make_shared<Loaded>()) {}

  // A stack's value holds its number in the low 32 bits and, above them, the part of the log in which it was written.
  static std::uint32_t number_of(std::uint64_t stack) { return static_cast<std::uint32_t>(stack); }
  // True if the present part of the log contains the stack. Earlier parts, with their stacks, are deleted sooner.
  bool is_kept(std::uint64_t stack) const { return stack >> 32U == part_.load(std::memory_order_relaxed); }

  // The stack of the calling thread; 0 if it could not be read or written. Call this at the beginning of a call by the
  // program, while the thread holds none of Ration's locks, because here() may ask the loader which files are loaded.
  std::uint64_t here(Write write) noexcept;
  // To be called when a new part of the log begins. The earlier part will be removed, so from now on each stack is
  // written again under a new number. Takes no lock.
  void write_again() noexcept { part_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kRemembered = 48;  // deeper stacks are read every time
  static constexpr unsigned kWays = 8;
  static constexpr unsigned kSets = 64;

  struct Seen {
    std::atomic<bool> is_in_use{false};  // true while a thread is reading or changing this entry
    const void *at = nullptr;            // the frame of here() when the stack was seen
    std::uint64_t stack = 0;
    unsigned depth = 0;
    std::array<std::uintptr_t, kRemembered> code;
    std::array<const std::uintptr_t *, kRemembered> place;
  };
  using Sets = std::array<std::array<Seen, kWays>, kSets>;
  static unsigned set_of(const void *at);
  // The files that the process had loaded when the loader was last asked. The object is replaced as a whole, because
  // Ration never asks the loader while it holds a lock.
  struct Loaded {
    LoadedModules modules;
    PythonFrames python;
  };

  std::uint64_t recognise(const void *at) noexcept;
  void remember(const void *at, const CallStack &stack, std::uint64_t number) noexcept;
  void forget() noexcept;
  std::shared_ptr<const Loaded> loaded();
  std::uint64_t intern(const CallStack &stack, const Loaded &loaded, Write write);

  const bool with_python_;
  const std::unique_ptr<Sets> sets_;
  std::atomic<unsigned> turn_{0};
  std::atomic<unsigned> part_{0};
  std::atomic<unsigned long long> unloaded_{0};  // files ever unloaded, as the loader last reported
  RankedMutex interning_{Rank::kStacks};
  StackTree tree_ GUARDED_BY(interning_);
  unsigned written_in_ GUARDED_BY(interning_) = 0;  // the part of the log in which the tree's content was written
  std::shared_ptr<const Loaded> loaded_ GUARDED_BY(interning_);
};

}  // namespace ration::events
