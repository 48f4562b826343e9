// The deferred queue (deferred_queue.h) of mode async. It holds blocks of the driver's pool that the program has freed.
// Clean blocks (the device has finished using them) are handed out in Cleaned::items and are returned to the driver.
// Layer: policy/driver_pools. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "policy/contexts/deferred_queue.h"

namespace ration::policy {

struct DeferredBlock final : Deferred {
  DeferredBlock(CUdeviceptr at, std::uint64_t size, ContextRef in) : address(at), bytes(size), context(std::move(in)) {}
  static const DeferredBlock &of(const std::unique_ptr<Deferred> &item) {
    return static_cast<const DeferredBlock &>(*item);
  }

  const CUdeviceptr address;
  const std::uint64_t bytes;
  const ContextRef context;  // the program's context in which the block was allocated
};

// Design: design/modes.md#deferred-frees
class DeferredFrees final : public DeferredQueue {
 public:
  DeferredFrees(FenceTracker &fences, int device) : DeferredQueue(fences, Rank::kDeferredFrees, device) {}

  // Returns false, with nothing changed, if host memory has run out.
  bool add(const DeferredBlock &block) noexcept;
  // Whether the number of open blocks or bytes makes it time to collect().
  bool is_worth_collecting(std::uint64_t most_bytes);
  // Whether an address is in a freed block that has not been returned to the driver yet.
  bool covers(CUdeviceptr address);

  // Called before and after the driver's call that frees a clean block. `returned`: the call succeeded; otherwise the
  // block is still allocated. REQUIRES: the block came from Cleaned::items.
  using Held = std::map<CUdeviceptr, std::uint64_t>::node_type;  // moved without host memory
  Held begin_return(const DeferredBlock &block) noexcept;
  void finish_return(const DeferredBlock &block, Held held, bool returned) noexcept;
  // Takes back clean blocks that cannot be returned yet, to hand them out again later.
  void keep(Items &blocks) noexcept;
  std::uint64_t in_hands() const { return in_hands_.load(); }

  // Retains clean blocks for the next request of the same size instead of returning them to the driver. Returns false
  // if host memory has run out; then `clean` holds the rest.
  bool retain(Items &clean) noexcept;
  // Takes a retained block of the size that the driver's pool would use for a request of `bytes`; returns 0 if there is
  // none. To the driver, the block keeps the size for which it was first allocated.
  CUdeviceptr take_retained(std::uint64_t bytes) noexcept;
  // Takes all retained blocks, to be returned as if they had just become clean.
  Items release_retained() noexcept;
  std::uint64_t retained_bytes() const { return retained_bytes_.load(std::memory_order_relaxed); }

 private:
  bool reclaim(Items &items, Cleaned &cleaned) override REQUIRES(mutex_);

  static constexpr std::uint64_t kMostOpenBlocks = 1024;
  std::map<CUdeviceptr, std::uint64_t> held_ GUARDED_BY(mutex_);  // address → bytes, until the driver has freed it
  std::map<std::uint64_t, Items> retained_ GUARDED_BY(mutex_);    // by the bytes that were asked for; no list is empty
  std::atomic<std::uint64_t> retained_bytes_{0};
};

}  // namespace ration::policy
