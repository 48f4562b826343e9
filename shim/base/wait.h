// The only way in which Ration waits for another thread is to check a condition, pause, and check again.
// Layer: base. Threads: any; never under a lock. Called from: any path of a hook that is not a hit.
//
// A waiting thread first spins, then yields, then sleeps on a futex for at most kLongestSleepNs at a time. Because it
// ends up asleep, a waiter with real-time priority cannot starve the thread that it waits for. The thread that makes a
// condition true calls wake_waiters(), so the sleep is normally short. If the driver or another process makes the
// condition true, nothing calls wake_waiters(), and the sleep lasts up to its time limit. Nothing here is a
// cancellation point.
#pragma once

#include <atomic>
#include <cstdint>

namespace ration {

// Sleeps between checks, each of which costs a call. Each sleep is twice as long as the one before.
class Backoff {
 public:
  static constexpr long kLongestNs = 1'600'000;

  explicit Backoff(long first_ns = 100'000) : next_ns_(first_ns) {}
  void sleep() noexcept;

 private:
  long next_ns_;
};

// One wait of one thread:
//   for (Waiter waiter; !done(); waiter.pause()) {}
class Waiter {
 public:
  Waiter() = default;
  ~Waiter() {
    if (pauses_ > 0) {
      leave();
    }
  }
  Waiter(const Waiter &) = delete;
  Waiter &operator=(const Waiter &) = delete;

  // GUARANTEES: from the second pause on, a wake_waiters() after the caller's latest check of its condition ends the
  // pause.
  void pause() noexcept;

 private:
  static void leave() noexcept;

  int pauses_ = 0;
  std::uint32_t seen_ = 0;
  long next_ns_ = 50'000;
};

template <class Done>
void wait_until(const Done &done) {
  for (Waiter waiter; !done(); waiter.pause()) {
  }
}

namespace wait_detail {
inline constinit std::atomic<std::uint32_t> waiters{0};
void wake_all() noexcept;
}  // namespace wait_detail

// Call it after a store that another thread may wait for. Costs one load if no thread waits. That store and this
// function's load must both be seq_cst, so that either the waiter sees the store or this function sees the waiter.
inline void wake_waiters() noexcept {
  if (wait_detail::waiters.load() != 0) {
    wait_detail::wake_all();
  }
}

}  // namespace ration
