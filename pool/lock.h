// A mutex that costs one atomic read-modify-write, and a condition variable for it. clang's -Wthread-safety checks
// both.
// Layer: pool, a leaf (standard library only).
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define RATION_POOL_ANNOTATE(what) __attribute__((what))
#else
#define RATION_POOL_ANNOTATE(what)
#endif

namespace ration::pool {

// The mutex is meant for critical sections of a few dozen nanoseconds. The unlock is a plain store: no wake-up, no
// system call. A waiter polls less and less often, so that the holder can run many sections from its own cache between
// two polls. A std::mutex costs two read-modify-writes and, with two threads on two cores, wakes a sleeping thread in
// nearly every section. This class wraps libc's spin lock instead of an atomic, because a ThreadSanitizer in the
// program sees our calls of malloc and memmove, but no locks except those of libc.
// Design: design/fast-path.md#a-spin-lock
class RATION_POOL_ANNOTATE(capability("mutex")) Mutex {
 public:
  Mutex() noexcept { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
  ~Mutex() { pthread_spin_destroy(&lock_); }
  Mutex(const Mutex &) = delete;
  Mutex &operator=(const Mutex &) = delete;

  void lock() RATION_POOL_ANNOTATE(acquire_capability()) {
    if (pthread_spin_trylock(&lock_) != 0) wait();
  }
  void unlock() RATION_POOL_ANNOTATE(release_capability()) { pthread_spin_unlock(&lock_); }

 private:
  [[gnu::cold, gnu::noinline]] void wait() noexcept;

  pthread_spinlock_t lock_;
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
  // Releases the mutex until a notification arrives. May return spuriously, so the caller checks its condition again.
  void wait(Mutex &mutex) RATION_POOL_ANNOTATE(requires_capability(mutex));
  // REQUIRES: the caller holds the mutex, so that no waiter misses a change between its check and its wait.
  void notify_all();

 private:
  std::mutex sleep_;  // acquired while holding the mutex
  std::condition_variable changed_;
  std::uint64_t notifications_ = 0;  // guarded by sleep_
};

}  // namespace ration::pool
