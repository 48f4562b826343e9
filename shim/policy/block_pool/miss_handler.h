// Serves one request that its pool has no room for: the pool's upstream, and why it failed.
// Layer: policy/block_pool. Threads: lives on the stack of one call; the pool lets one call grow at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/block_pool/block_pools.h"
#include "policy/block_pool/granule_memory.h"

namespace ration::policy {

class MissHandler final : public pool::Upstream {
 public:
  MissHandler(BlockPools &pools, const Request &request, const Contexts::Current &where, ContextPool &pool,
              BlockPools::DevicePoolState &state);
  ~MissHandler() override;

  // The pool calls them in this order, each as often as it helps: clean blocks, then the driver, then waiting.
  bool collect() noexcept override;
  std::optional<pool::Slab> grow(std::uint64_t minimum_bytes) noexcept override;
  pool::stitch::DeviceMemory *memory() noexcept override { return &memory_; }
  std::uint64_t room() noexcept override;
  std::optional<pool::Slab> grow_by_part(std::uint64_t bytes, std::uint64_t most_bytes) noexcept override;
  void shrink(const pool::Slab &slab) noexcept override;
  bool wait() noexcept override;

  // Why there is no room once the pool has given up: the driver's own error, or a reason.
  CUresult error() const { return grow_error_ != CUDA_SUCCESS ? grow_error_ : look_error_; }
  events::Reason reason() const { return reason_; }
  // Another thread freed while this one looked: the room may have moved between hole, block and quarantine meanwhile.
  bool overtaken() const;
  // For base/held.h, of a thread that left grow(), or a merge, without returning.
  static void give_up_growth(void *blocks) noexcept;

 private:
  std::optional<pool::Slab> grow_now(std::uint64_t minimum_bytes) noexcept;
  bool may_grow();
  bool make_room(std::uint64_t slab_bytes, Room::Patience patience);
  bool stays_out();
  bool has_stretch();
  bool wait_for_clean();
  void remember(const Quarantine::Cleaned &cleaned);
  BlockPools::Take take_once(std::uint64_t bytes, ledger::Effort effort, pool::Slab &slab);
  bool drain_briefly();
  std::uint64_t next_slab_bytes(std::uint64_t minimum_bytes);
  std::optional<pool::Slab> take(std::uint64_t from_bytes, std::uint64_t minimum_bytes,
                                 ledger::Effort most = ledger::Effort::kReclaimFromDead);

  BlockPools &pools_;
  const Request &request_;
  const Contexts::Current &where_;
  ContextPool &pool_;
  BlockPools::DevicePoolState &state_;
  ledger::Account &account_;
  GranuleMemory memory_;
  std::uint64_t lacking_;  // what the pool needs beside all that it has
  CUresult grow_error_ = CUDA_SUCCESS;
  CUresult look_error_ = CUDA_SUCCESS;  // of the latest look into the quarantine
  events::Reason reason_;
  // While grow_by_part() grows, how large a handle is; and what it has got and not given out yet, the first one last.
  std::uint64_t part_bytes_ = 0;
  std::vector<pool::Slab> parts_;
  // The quarantine's counts before the latest look into the pool.
  std::uint64_t seen_retired_ = 0;
  std::uint64_t seen_cleaned_ = 0;
  bool capturing_ = false;
  bool drained_briefly_ = false;
  Room::Retries retries_;
  std::optional<bool> stays_out_;
  std::uint64_t capture_deadline_ns_ = 0;
};

}  // namespace ration::policy
