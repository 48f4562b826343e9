// A mutex with a rank, for the shared tables of the core. Below all layers: any folder of shim/ may include it.
// Threads: a thread takes locks in ascending rank only; debug builds stop at the first violation.
#pragma once

#include <cassert>
#include <mutex>

#if defined(__clang__)
#define RATION_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define RATION_THREAD_ANNOTATION(x)
#endif
#define CAPABILITY(x) RATION_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY RATION_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) RATION_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) RATION_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) RATION_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) RATION_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace ration {

// The outermost lock comes first. No driver call, I/O or formatting is allowed under any of these locks, with two
// exceptions: kLogWriter, which exists to order the write(2) calls, and kStacks, under which a new stack is written
// before its number is used.
enum class Rank : int {
  kFirstUse = 1,
  kDevices,
  kContexts,
  kGreens,
  kCaptures,
  kAddressBook,
  kEndingRanges,
  kSlabs,
  kGranules,
  kQuarantine,
  kExports,
  kImports,
  kProgress,
  kPendingFrees,
  kPhysicalMemory,
  kArrayCosts,
  kGraphs,
  kStreamPools,
  kOrphanFences,
  kIdleNeighbours,
  kAsyncPools,
  kDeferredFrees,
  kOverhead,
  kMembership,
  kStacks,
  kLogWriter
};

class CAPABILITY("mutex") RankedMutex {
 public:
  explicit constexpr RankedMutex(Rank rank) : rank_(rank) {}
  RankedMutex(const RankedMutex &) = delete;
  RankedMutex &operator=(const RankedMutex &) = delete;

  void lock() ACQUIRE() {
#ifndef NDEBUG
    assert(innermost_held < static_cast<int>(rank_) && "lock ranks out of order");
#endif
    mutex_.lock();
#ifndef NDEBUG
    held_over_ = innermost_held;
    innermost_held = static_cast<int>(rank_);
#endif
  }
  void unlock() RELEASE() {
#ifndef NDEBUG
    innermost_held = held_over_;
#endif
    mutex_.unlock();
  }
#ifndef NDEBUG
  static bool is_any_held() {  // by this thread
    return innermost_held != 0;
  }
#endif

 private:
  std::mutex mutex_;
  [[maybe_unused]] const Rank rank_;
#ifndef NDEBUG
  static inline thread_local int innermost_held = 0;
  int held_over_ = 0;  // the rank that the holder held before; guarded by mutex_
#endif
};

class SCOPED_CAPABILITY Guard {
 public:
  explicit Guard(RankedMutex &mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Guard() RELEASE() { mutex_.unlock(); }
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

 private:
  RankedMutex &mutex_;
};

}  // namespace ration
