// The short way of a pool's hits: from the current context's handle to its pool, in one critical section.
// Layer: policy. Threads: any; a fast path's lock is its pool's own, so nothing else is taken under it. Called from:
// allocate and free, before anything else is tried. Owns: the fast paths, as long as there is a Policy: who comes late
// with a handle finds a fast path that is closed, never one that is gone.
//
// A fast path is open as long as a call of the default kind is nobody's business but the pool's: no log, no
// preallocation to come, no free that waits, and a context that lives and is not about to end. Whatever changes one of
// these closes it under its lock first; the next allocation that took the long way opens it again.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/lock.h"
#include "driver/abi.h"
#include "events/journal.h"
#include "pool/shared_pool.h"

namespace ration::policy {

class ContextPool;

class alignas(64) FastPath {
 public:
  static constexpr std::uint32_t kMostFreed = 1024;

  pool::Mutex &mutex() { return mutex_; }
  // A hint: whoever has the lock looks again.
  bool serves(CUcontext handle) const { return handle_.load(std::memory_order_relaxed) == handle; }

  // A live block for a thread whose current context is `handle`. False: nothing happened; the long way.
  bool allocate(CUcontext handle, std::uint64_t bytes, events::Journal &journal, std::uint64_t &address) noexcept;
  enum class Freed {
    no,     // nothing happened; the long way
    freed,  // retired, and kept here for the quarantine
    due,    // and it is time for the quarantine to take in what is kept; `device` says which one's
  };
  // A block of more than `most` bytes is not freed here: others must be told how far the use falls, which no hit does.
  Freed free(CUcontext handle, std::uint64_t address, events::Journal &journal, std::uint64_t most,
             int &device) noexcept;

  // `may_open` is asked under the lock.
  template <class MayOpen>
  void open(ContextPool &pool, CUcontext handle, const MayOpen &may_open) noexcept {
    const pool::Guard guard(mutex_);
    if (!may_open()) {
      return;
    }
    pool_ = &pool;
    handle_.store(handle, std::memory_order_relaxed);
  }
  void close() noexcept;

  // Of its pool, -1: none any more; a hint.
  int device() const { return device_.load(std::memory_order_relaxed); }
  // Whether a free that this thread knows of may be in here.
  bool keeps_any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // Calls take(pool, addresses, count, bytes) with what is kept of `device`; it is the caller's from then on.
  template <class Take>
  void hand_over(int device, const Take &take) {
    const pool::Guard guard(mutex_);
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count == 0 || device_.load(std::memory_order_relaxed) != device) {
      return;
    }
    take(*pool_, freed_.get(), count, bytes_);
    count_.store(0, std::memory_order_relaxed);
    bytes_ = 0;
  }
  // When a free is due.
  void set_due(std::uint64_t blocks, std::uint64_t bytes) {
    due_blocks_.store(blocks, std::memory_order_relaxed);
    due_bytes_.store(bytes, std::memory_order_relaxed);
  }

 private:
  friend class FastPaths;

  pool::Mutex mutex_;
  std::atomic<int> device_{-1};             // written under the lock; its pool's
  std::atomic<CUcontext> handle_{nullptr};  // written under the lock; null: closed
  ContextPool *pool_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<std::uint32_t> count_{0};         // written under the lock; of freed_
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;  // of those blocks
  std::unique_ptr<pool::Address[]> freed_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> due_blocks_{1};  // hints of the quarantine's
  std::atomic<std::uint64_t> due_bytes_{1};
};

class FastPaths {
 public:
  // The fast path of one pool, for the pool's life; or none, where too many contexts want one. Throws bad_alloc.
  class Claim {
   public:
    Claim() = default;
    Claim(FastPaths &fast_paths, CUcontext handle, int device);
    Claim(Claim &&other) noexcept : fast_paths_(other.fast_paths_), path_(std::exchange(other.path_, nullptr)) {}
    Claim &operator=(Claim &&) = delete;
    ~Claim();
    FastPath *path() const { return path_; }

   private:
    FastPaths *fast_paths_ = nullptr;
    FastPath *path_ = nullptr;
  };

  FastPaths() = default;
  FastPaths(const FastPaths &) = delete;
  FastPaths &operator=(const FastPaths &) = delete;

  // Whether any fast path was ever opened: else it is not worth asking what is current.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  void note_use() { in_use_.store(true, std::memory_order_relaxed); }
  // The fast path that is open for `handle`, or nullptr. No lock: it may close any time.
  FastPath *find(CUcontext handle);
  void close_all(int device) noexcept;
  // Calls visit(fast path) with every fast path of a pool of `device`, and perhaps with some that just changed hands. A
  // fast path that it misses was claimed behind it: whatever was stored before, seq_cst, is seen by that fast path's
  // `may_open`.
  template <class Visit>
  void each_of(int device, const Visit &visit) {
    for (std::uint64_t left = claimed_.load(); left != 0; left &= left - 1) {
      FastPath &path = fast_paths_[std::countr_zero(left)];
      if (path.device_.load() == device) {
        visit(path);
      }
    }
  }

 private:
  static constexpr unsigned kLanes = 64;  // a bit each of claimed_
  static constexpr unsigned kWays = 4;    // fast paths that a handle may have
  static unsigned first_of(CUcontext handle);

  FastPath fast_paths_[kLanes];
  std::atomic<std::uint64_t> claimed_{0};
  std::atomic<bool> in_use_{false};
};

}  // namespace ration::policy
