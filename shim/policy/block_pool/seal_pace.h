// Decides when the frees of one device's pools are due to get a fence, and how many of their bytes may stay unclean.
// Layer: policy/block_pool. Threads: under the quarantine's lock, except for what is atomic.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/saturating.h"
#include "policy/contexts/deferred_queue.h"

namespace ration::policy {

class SealPace {
 public:
  static constexpr std::uint64_t kFinestBlocks = 1024;  // in the smallest epoch

  // `pool_bytes`: the size of the device's pools. `slack_bytes`: how much may stay unsealed. `most_bytes`: how large
  // the pools can become. `takes_from_others`: other processes could use memory that the pools take.
  void set_sizes(std::uint64_t pool_bytes, std::uint64_t slack_bytes, std::uint64_t most_bytes,
                 bool takes_from_others) {
    finest_bytes_ = std::max(pool_bytes / 8, slack_bytes);
    large_bytes_.store(most_bytes / kFewBlocks, std::memory_order_relaxed);
    cap_bytes_.store(std::max(kLeastCapBytes, pool_bytes / 2), std::memory_order_relaxed);
    takes_from_others_.store(takes_from_others, std::memory_order_relaxed);
  }
  bool is_due(DeferredSize open) const {
    return open.blocks >= next_seal_blocks_ && (open.blocks >= epoch_blocks() || open.bytes >= epoch_bytes());
  }
  bool is_worthwhile(DeferredSize open) const {
    return open.blocks >= kFinestBlocks / 4 || open.bytes >= finest_bytes_ / 4;
  }
  // How much may still be freed before a seal is due, if only one thread frees.
  DeferredSize left(DeferredSize open) const {
    const bool refused = open.blocks < next_seal_blocks_;
    const std::uint64_t blocks = refused ? next_seal_blocks_ : epoch_blocks();
    const std::uint64_t bytes = refused ? UINT64_MAX : epoch_bytes();
    return {minus_or_zero(blocks, open.blocks), minus_or_zero(bytes, open.bytes)};
  }
  // A seal that was refused is not tried again at every free.
  void note_seal(bool taken, DeferredSize open) { next_seal_blocks_ = taken ? 0 : open.blocks + kFinestBlocks; }
  // A program that has to wait is limited by the device, so only fewer and longer waits can help it.
  void coarsen() { coarseness_ = std::min(coarseness_ + 1, kCoarsest); }

  // If a block of this size or more is freed, open frees are sealed at once. Few such blocks fit, so the program will
  // soon need the memory again, and a later fence would also wait for work that the program submits until then.
  std::uint64_t large_bytes() const { return large_bytes_.load(std::memory_order_relaxed); }
  // A pool that could grow should first look for freed memory once this much is not clean: half of the pools' bytes,
  // but at least 64 MiB.
  std::uint64_t cap_bytes() const { return cap_bytes_.load(std::memory_order_relaxed); }
  // The most bytes that may be freed and not clean if only a call that waits can learn what is clean; UINT64_MAX if
  // there is no cap. Bytes that the last wait could not clean because of other contexts do not count. So the next wait
  // is due once the bytes freed since that wait exceed the cap.
  // Design: design/groups.md#frees-that-wait
  std::uint64_t most_unwaited_bytes(std::uint64_t freed_bytes) const {
    return takes_from_others_.load(std::memory_order_relaxed)
               ? cap_bytes() + std::min(left_bytes_.load(std::memory_order_relaxed), freed_bytes)
               : UINT64_MAX;
  }
  // Called after a wait for one context; `bytes`: the bytes that other contexts still keep from being clean.
  void note_left(std::uint64_t bytes) { left_bytes_.store(bytes, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kCoarsest = 2;
  static constexpr std::uint64_t kFewBlocks = 64;
  static constexpr std::uint64_t kLeastCapBytes = 64U << 20U;

  std::uint64_t epoch_blocks() const { return kFinestBlocks << coarseness_; }
  std::uint64_t epoch_bytes() const { return finest_bytes_ << coarseness_; }

  std::uint64_t finest_bytes_ = 0;      // in the smallest epoch
  std::uint64_t next_seal_blocks_ = 0;  // no seal before this many blocks are open
  unsigned coarseness_ = 0;             // epochs are 2^this times the finest
  std::atomic<std::uint64_t> large_bytes_{UINT64_MAX};
  std::atomic<std::uint64_t> cap_bytes_{kLeastCapBytes};
  std::atomic<bool> takes_from_others_{false};
  std::atomic<std::uint64_t> left_bytes_{0};
};

}  // namespace ration::policy
