#include "base/fork_exclusion.h"

#include <atomic>

#include "base/clock.h"
#include "base/wait.h"

// The function that glibc's pthread_atfork(3) calls (LSB 5, libc). It is used directly because pthread_atfork is in an
// archive or in libc, depending on version and architecture. musl lacks it; there the preloaded library must load but
// does nothing.
extern "C" {
int register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void *library) __asm__("__register_atfork")
    __attribute__((weak));
extern void *library_handle __asm__("__dso_handle") __attribute__((visibility("hidden")));
}

namespace ration {
namespace {

constinit std::atomic<int> exclusions{0};
constinit std::atomic<unsigned> generation{0};  // number of forks between the first process and this one
constinit std::atomic<int> forks_in_progress{0};
constinit std::atomic<std::uint64_t> unwaited_forks{0};  // number of forks so far that went ahead
constinit std::atomic<void (*)()> callbacks[4]{};

// A fork and an exclusion each store first and then load, so one of the two sees the other. A fork that waits stores
// nothing, because its own wake_waiters() would end its pause.
void before_fork() {
  const std::uint64_t deadline = now_ns() + ForkExclusion::kLongestNs;
  const auto may_go_on = [deadline] { return exclusions.load() == 0 || now_ns() > deadline; };
  for (Waiter waiter;; waiter.pause()) {
    if (!may_go_on()) {
      continue;
    }
    forks_in_progress.fetch_add(1);
    if (may_go_on()) {
      unwaited_forks.fetch_add(1);
      return;
    }
    forks_in_progress.fetch_sub(1);
    wake_waiters();
  }
}

void after_fork() {
  forks_in_progress.fetch_sub(1);
  wake_waiters();
}

void in_child() {
  generation.fetch_add(1);
  forks_in_progress.store(0);
  exclusions.store(0);
  for (const auto &callback : callbacks) {
    if (void (*const call)() = callback.load()) {
      call();
    }
  }
}

// Not a guarded static, because a child forked during its construction would inherit its guard locked. Registering
// twice is harmless.
void watch_forks() {
  static std::atomic<bool> registered = false;
  if (!registered.load()) {
    registered.store(&register_atfork != nullptr &&
                     register_atfork(before_fork, after_fork, in_child, &library_handle) == 0);
  }
}

}  // namespace

bool call_in_forked_child(void (*callback)()) noexcept {
  watch_forks();
  for (auto &place : callbacks) {
    void (*found)() = nullptr;
    if (place.compare_exchange_strong(found, callback) || found == callback) {
      return true;
    }
  }
  return false;
}

ForkExclusion::ForkExclusion() : ForkExclusion(now_ns() + kLongestNs) {}

ForkExclusion::ForkExclusion(std::uint64_t deadline_ns) {
  watch_forks();
  generation_ = generation.load();
  exclusions.fetch_add(1);
  for (Waiter waiter;; waiter.pause()) {
    unwaited_before_ = unwaited_forks.load();
    no_forks_ = forks_in_progress.load() == 0;
    if (no_forks_ || now_ns() >= deadline_ns) {
      return;
    }
  }
}

ForkExclusion::~ForkExclusion() {
  if (generation_ == generation.load()) {  // else in a child, forked by a signal handler: not counted
    exclusions.fetch_sub(1);
    wake_waiters();
  }
}

bool ForkExclusion::failed() const {
  return !no_forks_ || unwaited_forks.load() != unwaited_before_;
}

}  // namespace ration
