#include "pool/lock.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ration::pool {
namespace {

// Tells the core that this thread is polling. On other architectures the thread just polls a little more often.
void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

constexpr int kMostPauses = 256;  // between two polls
constexpr int kSpins = 16;        // polls before the holder is assumed to be preempted
constexpr int kYields = 8;
constexpr std::chrono::microseconds kFirstSleep{50};
constexpr std::chrono::microseconds kLongestSleep{1000};

// Sleeping is a cancellation point, but the caller must not be cancelled in it.
void sleep_uncancelled(std::chrono::microseconds time) noexcept {
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  std::this_thread::sleep_for(time);
  pthread_setcancelstate(before, nullptr);
}

}  // namespace

// At first the holder is assumed to run on another core. After some polls it is assumed to be preempted, and yielding
// lets it run again. If this thread has a real-time priority, only sleeping lets the holder run.
void Mutex::wait() noexcept {
  int pauses = 4;
  auto time = kFirstSleep;
  for (int polls = 0;; ++polls) {
    if (pthread_spin_trylock(&lock_) == 0) return;
    if (polls < kSpins) {
      for (int i = 0; i < pauses; ++i) pause();
      pauses = std::min(2 * pauses, kMostPauses);
    } else if (polls < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      sleep_uncancelled(time);
      time = std::min(2 * time, kLongestSleep);
      polls = kSpins + kYields;  // sleep only, from now on
    }
  }
}

void Condition::wait(Mutex &mutex) {
  std::unique_lock<std::mutex> asleep(sleep_);
  const std::uint64_t seen = notifications_;
  mutex.unlock();
  changed_.wait(asleep, [&] { return notifications_ != seen; });
  asleep.unlock();  // release it before acquiring the mutex: notify_all() acquires them in the other order
  mutex.lock();
}

void Condition::notify_all() {
  {
    const std::lock_guard<std::mutex> awake(sleep_);
    ++notifications_;
  }
  changed_.notify_all();
}

}  // namespace ration::pool
