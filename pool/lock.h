// A mutex that costs one atomic read-modify-write, and a condition on it, which clang's -Wthread-safety can follow.
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

// For critical sections of some dozen nanoseconds. Whoever lets go does so by a plain store, wakes nobody and makes no
// system call; whoever waits looks again, ever more rarely: between two looks of a waiter the holder runs through many
// sections of its own out of its own cache. A std::mutex costs two read-modify-writes and, with two threads on two
// cores, wakes a sleeper at about every section. Under it lies libc's spin lock and no atomic of ours, because a
// program under ThreadSanitizer sees the malloc and memmove that we call, but of our locks only those that are libc's.
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
  // Lets go of the mutex until somebody announces a change, or for no reason: look again.
  void wait(Mutex &mutex) RATION_POOL_ANNOTATE(requires_capability(mutex));
  // REQUIRES: the caller holds the mutex, so that nobody who waits has looked before the change and not seen it.
  void announce();

 private:
  std::mutex sleep_;  // taken inside the mutex
  std::condition_variable changed_;
  std::uint64_t announced_ = 0;  // guarded by sleep_
};

}  // namespace ration::pool
