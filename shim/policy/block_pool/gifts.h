// What other processes wish for of what the pools hold and no block needs, and what was ordered for this process.
// Layer: policy/block_pool. Threads: any; never waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "policy/block_pool/giver.h"
#include "policy/block_pool/publication.h"
#include "policy/block_pool/returning.h"

namespace ration::policy {

// Design: design/groups.md#wishes
class Gifts {
 public:
  Gifts(const PoolParts &parts, DevicePools &pools, Publication &publication, Returning &returning, Room &room)
      : parts_(parts), pools_(pools), publication_(publication), returning_(returning), room_(room) {}

  // After a call that took or retired a block, a stitched one or not: publishes where others must see it, and then
  // gives.
  void note_change(const char *api, DevicePool &device, bool stitched) noexcept;
  // After the program's synchronise succeeded, in a context of `device`.
  void after_synchronise(int device) noexcept;
  // In a call of the program's that touches shared memory anyway, and by the giver.
  void give_to_others(const char *api, int device) noexcept;
  // Whether a wish was granted so lately that its owner may still be about to take it.
  bool gave_lately(int device) const;
  // Applies what was ordered for this process; where it holds more than was ordered, gives back what is free, and
  // closes the fast path.
  void heed_orders(const char *api) noexcept;
  // Whether a limit that was ordered lies below what is held, and leaves no room for so much more use.
  bool is_beyond_order(int device, std::uint64_t bytes);
  // For the giver, while the program calls nothing: thresholds, orders and publication.
  void look_after() noexcept;
  // A pool may hold what others wish for. Early: later the program may forbid new threads.
  void start_giving() noexcept { giver_.start(); }
  // At the end of the process, and of its main thread.
  void stop_giving() noexcept { giver_.stop(); }
  void end_giving() noexcept { giver_.end(Giver::kLastGiftNs); }

 private:
  const PoolParts parts_;
  DevicePools &pools_;
  Publication &publication_;
  Returning &returning_;
  Room &room_;
  std::atomic<std::uint64_t> gave_ns_[ledger::kMaxDevices] = {};
  Giver giver_{*this, parts_.ledger};  // the destructor ends it first
};

}  // namespace ration::policy
