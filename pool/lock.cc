#include "pool/lock.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ration::pool {
namespace {

// A hint to the core that this thread only looks; elsewhere than on these two it looks a little more often.
void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

constexpr int kMostPauses = 256;  // between two looks
constexpr int kSpins = 16;        // until it is taken for preempted
constexpr int kYields = 8;
constexpr std::chrono::microseconds kFirstNap{50};
constexpr std::chrono::microseconds kLongestNap{1000};

// Sleeping is a point at which a thread may be cancelled, and none of the callers can be left there.
void nap(std::chrono::microseconds time) noexcept {
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  std::this_thread::sleep_for(time);
  pthread_setcancelstate(before, nullptr);
}

}  // namespace

// First the holder is taken to run on another core. If it does not get through it has been preempted: yielding lets it
// run again, unless this thread is of a real-time priority, to which nothing but sleeping puts an end.
void Mutex::wait() noexcept {
  int pauses = 4;
  auto time = kFirstNap;
  for (int looks = 0;; ++looks) {
    if (pthread_spin_trylock(&lock_) == 0) return;
    if (looks < kSpins) {
      for (int i = 0; i < pauses; ++i) pause();
      pauses = std::min(2 * pauses, kMostPauses);
    } else if (looks < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      nap(time);
      time = std::min(2 * time, kLongestNap);
      looks = kSpins + kYields;  // for ever
    }
  }
}

void Condition::wait(Mutex &mutex) {
  std::unique_lock<std::mutex> asleep(sleep_);
  const std::uint64_t seen = announced_;
  mutex.unlock();
  changed_.wait(asleep, [&] { return announced_ != seen; });
  asleep.unlock();  // never wait for the mutex with it: whoever announces has the mutex
  mutex.lock();
}

void Condition::announce() {
  {
    const std::lock_guard<std::mutex> awake(sleep_);
    ++announced_;
  }
  changed_.notify_all();
}

}  // namespace ration::pool
