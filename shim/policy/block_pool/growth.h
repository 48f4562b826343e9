// The pool's upstream for one request that found no room: cleans, grows and waits, and says why that failed.
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

// The parts of the program with which a Growth works.
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

  // The pool calls the first three functions in this order, each as long as it helps. They reclaim clean blocks, ask
  // the driver, and wait.
  bool collect() noexcept override;
  std::vector<pool::Slab> grow(const pool::GrowthWish &wish) noexcept override;
  bool wait() noexcept override;
  void shrink(const pool::Slab &piece) noexcept override;
  pool::stitch::DeviceMemory *memory() noexcept override;

  // Why there is no room once the pool has given up: the driver's own error, or a reason.
  CUresult error() const { return grow_error_ != CUDA_SUCCESS ? grow_error_ : cleaning_.error(); }
  events::Reason reason() const { return reason_; }
  // Whether another attempt may succeed, because another thread freed a block while this one searched.
  bool overtaken() const { return error() == CUDA_SUCCESS && cleaning_.overtaken(); }
  // Called by base/held.h if a thread left grow(), or a merge, without returning.
  static void give_up(void *blocks) noexcept;

 private:
  using Pieces = std::vector<pool::Slab>;
  Pieces grow_now(const pool::GrowthWish &wish);
  Pieces wait_for_others(const pool::GrowthWish &wish, std::uint64_t ended);
  Pieces take(std::uint64_t bytes, const pool::GrowthWish &wish, ledger::Effort most);
  std::uint64_t next_bytes(std::uint64_t minimum_bytes) const;
  bool make_room(std::uint64_t bytes, Room::Patience patience);
  bool stays_out();
  bool suffices_when_clean() const;

  const GrowthParts &parts_;
  const PoolCall &call_;
  Cleaning cleaning_;
  std::unique_ptr<pool::stitch::DeviceMemory> memory_;
  std::uint64_t lacking_;  // the bytes that the pool needs beyond what it holds
  CUresult grow_error_ = CUDA_SUCCESS;
  events::Reason reason_;
  Room::Retries retries_;
  std::optional<bool> stays_out_;
};

}  // namespace ration::policy
