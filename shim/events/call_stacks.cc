#include "events/call_stacks.h"

#include <pthread.h>

#include <algorithm>

#include "base/held.h"

namespace ration::events {
namespace {

// Symbols made by the linker, between which the library's own code is.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
}

bool is_ours(std::uintptr_t code) {
  return reinterpret_cast<std::uintptr_t>(__ehdr_start) <= code && code < reinterpret_cast<std::uintptr_t>(etext);
}

// The first call that is not of this library.
unsigned first_of_program(const CallStack &stack) {
  unsigned first = 0;
  while (first < stack.depth && is_ours(stack.code[first])) {
    ++first;
  }
  return first;
}

// The end of the calling thread's own stack, if `at` is on it: up to there it can be read while the thread lives. 0:
// `at` is on another stack, such as a coroutine's, whose end is not known.
std::uintptr_t end_of_own_stack(const void *at) noexcept {
  RationThread *const thread = held::thread();
  if (thread == nullptr) {
    return 0;
  }
  if (thread->stack_high == 0) {
    pthread_attr_t attributes;
    void *low = nullptr;
    std::size_t bytes = 0;
    thread->stack_low = thread->stack_high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
        thread->stack_low = reinterpret_cast<std::uintptr_t>(low);
        thread->stack_high = thread->stack_low + bytes;
      }
      pthread_attr_destroy(&attributes);
    }
  }
  const auto place = reinterpret_cast<std::uintptr_t>(at);
  return thread->stack_low <= place && place < thread->stack_high ? thread->stack_high : 0;
}

}  // namespace

unsigned CallStacks::set_of(const void *at) {
  const auto place = reinterpret_cast<std::uintptr_t>(at);
  return static_cast<unsigned>((place >> 4U ^ place >> 12U ^ place >> 20U) % kSets);
}

std::uint64_t CallStacks::recognise(const void *at) noexcept {
  for (Seen &each : (*sets_)[set_of(at)]) {
    if (each.is_in_use.exchange(true, std::memory_order_acquire)) {
      continue;
    }
    const bool is_it = each.at == at && each.depth != 0 && each.stack >> 32U == part_.load(std::memory_order_relaxed) &&
                       is_still(each.code.data(), each.place.data(), each.depth);
    const std::uint64_t number = is_it ? each.stack : 0;
    each.is_in_use.store(false, std::memory_order_release);
    if (is_it) {
      return number;
    }
  }
  return 0;
}

void CallStacks::remember(const void *at, const CallStack &stack, std::uint64_t number) noexcept {
  if (number == 0 || !stack.is_placed || stack.depth > kRemembered) {
    return;
  }
  Seen &into = (*sets_)[set_of(at)][turn_.fetch_add(1, std::memory_order_relaxed) % kWays];
  if (into.is_in_use.exchange(true, std::memory_order_acquire)) {
    return;
  }
  into.at = at;
  into.stack = number;
  into.depth = stack.depth;
  std::copy_n(stack.code.begin(), stack.depth, into.code.begin());
  std::copy_n(stack.place.begin(), stack.depth, into.place.begin());
  into.is_in_use.store(false, std::memory_order_release);
}

void CallStacks::forget() noexcept {
  for (auto &set : *sets_) {
    for (Seen &each : set) {
      while (each.is_in_use.exchange(true, std::memory_order_acquire)) {  // only as long as a thread compares a stack
      }
      each.depth = 0;
      each.is_in_use.store(false, std::memory_order_release);
    }
  }
}

__attribute__((noinline)) std::uint64_t CallStacks::here(Write write) noexcept {
  const void *const at = __builtin_frame_address(0);
  const std::uintptr_t high = end_of_own_stack(at);
  if (!with_python_ && high != 0 && LoadedModules::unloaded_so_far() == unloaded_.load(std::memory_order_relaxed)) {
    if (const std::uint64_t known = recognise(at); known != 0) {
      return known;
    }
  }
  try {
    const std::shared_ptr<const Loaded> now = loaded();
    CallStack stack;
    read_call_stack(stack);
    const std::uint64_t number = intern(stack, *now, write);
    const bool is_within = std::all_of(stack.place.begin(), stack.place.begin() + stack.depth, [&](const auto *place) {
      return reinterpret_cast<std::uintptr_t>(place) < high;
    });
    if (!with_python_ && is_within) {
      remember(at, stack, number);
    }
    return number;
  } catch (...) {  // out of memory
    return 0;
  }
}

std::shared_ptr<const CallStacks::Loaded> CallStacks::loaded() {
  std::shared_ptr<const Loaded> known;
  {
    Guard guard(interning_);
    known = loaded_;
  }
  auto now = std::make_shared<Loaded>();
  if (!now->modules.ask(known->modules)) {
    return known;
  }
  now->python = known->python;
  if (with_python_) {
    now->python.find_interpreter(now->modules);
  }
  Guard guard(interning_);
  if (now->modules.is_older(loaded_->modules)) {
    return loaded_;
  }
  if (now->modules.lost_some(loaded_->modules)) {
    tree_.forget_addresses();
    forget();
  }
  loaded_ = now;
  unloaded_.store(now->modules.unloaded(), std::memory_order_relaxed);
  return now;
}

std::uint64_t CallStacks::intern(const CallStack &stack, const Loaded &loaded, Write write) {
  const unsigned first = first_of_program(stack);
  unsigned last = stack.depth;  // the end of the native calls that are logged
  std::vector<PythonFrame> python;
  if (with_python_ && loaded.python.read(python)) {
    last = first;
    while (last < stack.depth && !loaded.python.is_interpreter(stack.code[last])) {
      ++last;
    }
  }
  std::vector<std::string> lines;
  Guard guard(interning_);
  const unsigned part = part_.load(std::memory_order_relaxed);
  if (part != written_in_) {
    tree_.write_again();
    written_in_ = part;
  }
  try {
    std::uint32_t number = 0;
    for (auto frame = python.rbegin(); frame != python.rend(); ++frame) {
      number = tree_.add(number, *frame, lines);
    }
    for (unsigned i = last; i > first; --i) {
      number = tree_.add(number, stack.code[i - 1], loaded.modules, lines);
    }
    if (lines.empty() || write(lines)) {
      tree_.keep();
      return number != 0 ? std::uint64_t{part} << 32U | number : 0;
    }
  } catch (...) {  // out of memory
  }
  tree_.undo();
  return 0;
}

}  // namespace ration::events
