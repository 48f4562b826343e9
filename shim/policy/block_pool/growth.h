// Serves one request that its pool has no room for, as the pool's upstream: cleans, grows, waits; and says why it
// failed.
// Layer: policy/block_pool. Threads: lives on the stack of one call; the pool lets one call grow at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "policy/block_pool/backing.h"
#include "policy/block_pool/cleaning.h"
#include "policy/block_pool/gifts.h"
#include "policy/block_pool/sharing.h"

namespace ration::policy {

// What requests work with whose pool has no room.
struct GrowthParts {
  Contexts &contexts;
  FenceTracker &fences;
  Devices &devices;
  Sharing &sharing;
  Gifts &gifts;
  Room &room;
};

class Growth final : public pool::Upstream {
 public:
  Growth(const GrowthParts &parts, const PoolCall &call);

  // The pool calls them in this order, each as often as it helps: clean blocks, then the driver, then waiting.
  bool collect() noexcept override;
  std::vector<pool::Slab> grow(const pool::GrowthWish &wish) noexcept override;
  bool wait() noexcept override;
  void shrink(const pool::Slab &piece) noexcept override;
  pool::stitch::DeviceMemory *memory() noexcept override;

  // Why there is no room once the pool has given up: the driver's own error, or a reason.
  CUresult error() const { return grow_error_ != CUDA_SUCCESS ? grow_error_ : cleaning_.error(); }
  events::Reason reason() const { return reason_; }
  // Whether another try may succeed: another thread freed while this one looked.
  bool overtaken() const { return error() == CUDA_SUCCESS && cleaning_.overtaken(); }
  // For base/held.h, of a thread that left grow(), or a merge, without returning.
  static void give_up(void *blocks) noexcept;

 private:
  using Pieces = std::vector<pool::Slab>;
  Pieces grow_now(const pool::GrowthWish &wish);
  Pieces wait_for_others(const pool::GrowthWish &wish, std::uint64_t ended);
  Pieces take(std::uint64_t bytes, const pool::GrowthWish &wish, ledger::Effort most);
  std::uint64_t next_bytes(std::uint64_t minimum_bytes) const;
  bool make_room(std::uint64_t bytes, Room::Patience patience);
  bool stays_out();
  bool has_stretch() const;

  const GrowthParts &parts_;
  const PoolCall &call_;
  Cleaning cleaning_;
  std::unique_ptr<pool::stitch::DeviceMemory> memory_;
  std::uint64_t lacking_;  // what the pool needs beside all that it has
  CUresult grow_error_ = CUDA_SUCCESS;
  events::Reason reason_;
  Room::Retries retries_;
  std::optional<bool> stays_out_;
};

}  // namespace ration::policy
