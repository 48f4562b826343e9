// The deferred queue (deferred_queue.h) of mode async: blocks of the driver's own pool that the program has freed.
// Clean ones are handed out in Cleaned::items and go back to the driver. Layer: policy/driver_pools. Threads: any.
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
  const ContextRef context;  // the program's that it was obtained in
};

// Design: design/modes.md#deferred-frees
class DeferredFrees final : public DeferredQueue {
 public:
  DeferredFrees(FenceTracker &fences, int device) : DeferredQueue(fences, Rank::kDeferredFrees, device) {}

  // False: the host has no memory; nothing changed.
  bool add(const DeferredBlock &block) noexcept;
  // Whether so much is open that it is time to collect().
  bool is_worth_collecting(std::uint64_t most_bytes);
  // Whether a freed block that the driver still has is around an address.
  bool covers(CUdeviceptr address);

  // Around the driver's call that takes a clean block back; `returned`: it did, else the block stays the driver's.
  // REQUIRES: it came from Cleaned::items.
  using Held = std::map<CUdeviceptr, std::uint64_t>::node_type;  // moved about without memory of the host
  Held begin_return(const DeferredBlock &block) noexcept;
  void finish_return(const DeferredBlock &block, Held held, bool returned) noexcept;
  // Clean blocks that cannot go back yet; they are offered again later.
  void keep(Items &blocks) noexcept;
  std::uint64_t in_hands() const { return in_hands_.load(); }

  // Clean blocks that the driver does not get yet: the next request that fits them can have them. False: the host has
  // no memory, and `clean` holds the rest.
  bool retain(Items &clean) noexcept;
  // One of at least that size, which takes no more of the driver's pool; 0: there is none. To the driver it keeps the
  // size that was first asked for.
  CUdeviceptr take_retained(std::uint64_t bytes) noexcept;
  // All of them, to be given back as if they had just become clean.
  Items release_retained() noexcept;
  std::uint64_t retained_bytes() const { return retained_bytes_.load(std::memory_order_relaxed); }

 private:
  bool reclaim(Items &items, Cleaned &cleaned) override REQUIRES(mutex_);

  static constexpr std::uint64_t kMostOpenBlocks = 1024;
  std::map<CUdeviceptr, std::uint64_t> held_ GUARDED_BY(mutex_);  // address → bytes, until the driver gets it
  std::map<std::uint64_t, Items> retained_ GUARDED_BY(mutex_);    // by bytes, as asked for; no list is empty
  std::atomic<std::uint64_t> retained_bytes_{0};
};

}  // namespace ration::policy
