// Blocks that the fast path has freed and keeps for the quarantine, which gathers them when it is asked.
// Layer: policy/block_pool. Threads: under the lock of the pool, except what is called a hint.
// Design: design/fast-path.md#frees-without-a-shared-counter
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "pool/unit.h"

namespace ration::policy {

// The outcome of a free on the fast path.
struct Freed {  // fits two registers
  enum Kind : std::uint8_t {
    no,     // nothing happened; take the slow path
    freed,  // retired, and kept here for the quarantine
    due,    // freed, and it is time for the quarantine of `device` to gather what is kept
    large,  // freed, and it is time to gather and to seal what is kept
  };
  Kind kind = no;
  bool first = false;  // this is now the only block that is kept here
  std::int32_t device = 0;
  std::uint64_t unserved_bytes = 0;  // the block's size if no hole is that large or much memory is unclean; else 0
};

class KeptFrees {
 public:
  static constexpr std::uint32_t kMost = 1024;

  // A hint: whether any free is kept here. It may miss frees of other threads, but none that this thread knows of.
  bool keeps_any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // A hint: whether so few blocks of this size fit under the limit that it matters where each lies
  // (PoolBounds::is_of_few).
  bool is_of_few(std::uint64_t bytes) const { return bytes >= few_bytes_.load(std::memory_order_relaxed); }

  // Whether there is room for one more block besides the kept ones and those that will be kept once in the log.
  bool has_room() const { return count_.load(std::memory_order_relaxed) + unrecorded_ != kMost; }
  void expect_one() { ++unrecorded_; }
  // Keeps a block. `expected`: expect_one() announced it. `retired_bytes`: the sum over the whole pool. `has_hole`: the
  // pool has a hole as large as the block.
  Freed keep(pool::Address address, std::uint64_t bytes, bool expected, std::uint64_t retired_bytes, bool has_hole) {
    unrecorded_ -= expected ? 1 : 0;
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    Freed freed{Freed::freed, count == 0};
    addresses_[count] = address;
    count_.store(count + 1, std::memory_order_relaxed);
    bytes_ += bytes;
    if (!has_hole || retired_bytes > most_retired_bytes_.load(std::memory_order_relaxed)) [[unlikely]] {
      freed.unserved_bytes = bytes;
    }
    if (bytes >= large_bytes_.load(std::memory_order_relaxed)) [[unlikely]] {
      freed.kind = Freed::large;
    } else if (count + 1 >= due_blocks_.load(std::memory_order_relaxed) ||
               bytes_ >= due_bytes_.load(std::memory_order_relaxed)) {
      freed.kind = Freed::due;
    }
    return freed;
  }
  // Calls take(addresses, count, bytes) with the kept blocks, which then belong to the caller.
  template <class Take>
  void hand_over(const Take &take) {
    if (const std::uint32_t count = count_.load(std::memory_order_relaxed); count != 0) {
      take(addresses_.get(), count, bytes_);
      count_.store(0, std::memory_order_relaxed);
      bytes_ = 0;
    }
  }

  // Sets the counts and sizes from which on a free is due (Freed::due, Freed::large).
  void set_due(std::uint64_t blocks_left, std::uint64_t bytes_left, std::uint64_t large_bytes,
               std::uint64_t most_unwaited_bytes) {
    due_blocks_.store(blocks_left, std::memory_order_relaxed);
    due_bytes_.store(bytes_left, std::memory_order_relaxed);
    large_bytes_.store(large_bytes, std::memory_order_relaxed);
    few_bytes_.store(large_bytes / 2, std::memory_order_relaxed);
    constexpr std::uint64_t kHalf = 32;  // half of the limit, counted in large blocks
    const std::uint64_t half = large_bytes < UINT64_MAX / kHalf ? large_bytes * kHalf : UINT64_MAX;
    most_retired_bytes_.store(std::min(half, most_unwaited_bytes), std::memory_order_relaxed);
  }

  // Empties this object for the next context. `addresses` has room for kMost blocks, or is null if there is no next
  // context. The next free is then due at once. Returns the array that was used before.
  std::unique_ptr<pool::Address[]> reset(std::unique_ptr<pool::Address[]> addresses) {
    count_.store(0, std::memory_order_relaxed);
    unrecorded_ = 0;
    bytes_ = 0;
    set_due(1, 1, UINT64_MAX, UINT64_MAX);
    addresses_.swap(addresses);
    return addresses;
  }

 private:
  std::atomic<std::uint32_t> count_{0};
  std::uint32_t unrecorded_ = 0;  // retired, to be kept once they are in the log
  std::uint64_t bytes_ = 0;       // of the kept blocks
  std::unique_ptr<pool::Address[]> addresses_;
  std::atomic<std::uint64_t> due_blocks_{1};  // hints from the quarantine
  std::atomic<std::uint64_t> due_bytes_{1};
  std::atomic<std::uint64_t> large_bytes_{UINT64_MAX};
  std::atomic<std::uint64_t> few_bytes_{UINT64_MAX / 2};
  std::atomic<std::uint64_t> most_retired_bytes_{UINT64_MAX};
};

}  // namespace ration::policy
