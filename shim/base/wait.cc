#include "base/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace ration {
namespace {

constexpr int kSpins = 4;    // pauses on the core, in case the other thread needs only a few instructions
constexpr int kYields = 12;  // then assumes that the other thread is preempted, and sleeps
constexpr int kInstructions = 32;

constinit std::atomic<std::uint32_t> wakes{0};

void relax() noexcept {
  for (int i = 0; i < kInstructions; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }
}

// libc's syscall() is no cancellation point, unlike nanosleep. Whatever it returns, the caller checks its condition
// again.
void sleep_on(const std::atomic<std::uint32_t> &word, std::uint32_t value, long ns) noexcept {
  const timespec time{0, ns};
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &time, nullptr, 0);
}

long twice(long ns) {
  return std::min(2 * ns, Backoff::kLongestNs);
}

}  // namespace

void Backoff::sleep() noexcept {
  const std::atomic<std::uint32_t> unshared{0};
  sleep_on(unshared, 0, next_ns_);
  next_ns_ = twice(next_ns_);
}

void Waiter::leave() noexcept {
  wait_detail::waiters.fetch_sub(1);
}

void Waiter::pause() noexcept {
  if (pauses_ == 0) {
    wait_detail::waiters.fetch_add(1);
  }
  if (pauses_ < kSpins) {
    relax();
  } else if (pauses_ < kYields) {
    sched_yield();
  } else {
    sleep_on(wakes, seen_, next_ns_);
    next_ns_ = twice(next_ns_);
  }
  pauses_ = std::min(pauses_ + 1, kYields);
  seen_ = wakes.load();  // before the caller's next check
}

void wait_detail::wake_all() noexcept {
  wakes.fetch_add(1);
  syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ration
