// A std::mutex and a condition on it that clang's -Wthread-safety can follow.
// Layer: pool, a leaf (standard library only).
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define RATION_POOL_ANNOTATE(what) __attribute__((what))
#else
#define RATION_POOL_ANNOTATE(what)
#endif

namespace ration::pool {

class RATION_POOL_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() RATION_POOL_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() RATION_POOL_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class RATION_POOL_ANNOTATE(scoped_lockable) Guard {
 public:
  explicit Guard(Mutex &mutex) RATION_POOL_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Guard() RATION_POOL_ANNOTATE(release_capability()) { mutex_.unlock(); }
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

 private:
  Mutex &mutex_;
};

class Condition {
 public:
  // Lets go of the mutex until somebody announces a change, or for no reason: look again.
  void wait(Mutex &mutex) RATION_POOL_ANNOTATE(requires_capability(mutex)) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    changed_.wait(held);
    (void)held.release();  // the caller's guard unlocks
  }
  void announce() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace ration::pool
