// If other processes lack memory (that is, have a wish), gives them memory that the pools hold but no block needs. Also
// applies the limits that `ration set` orders for this process.
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

  // Called after a block was taken or retired; `stitched` says whether it is a stitched block. Publishes the change if
  // others must see it, and then gives memory to others.
  void note_change(const char *api, DevicePool &device, bool stitched) noexcept;
  // Called after the program has synchronised successfully in a context of `device`.
  void after_synchronise(int device) noexcept;
  // Gives the driver back memory that other processes lack. Called by the giver, and in calls of the program that touch
  // shared memory anyway.
  void give_to_others(const char *api, int device) noexcept;
  // Whether a wish was granted so recently that the process with the wish may still be about to take the memory.
  bool gave_lately(int device) const;
  // Applies the limits that were ordered for this process. On a device where this process holds more than its limit,
  // gives back free memory and closes the fast path.
  void heed_orders(const char *api) noexcept;
  // Whether an ordered limit is below the held bytes and leaves no room to use `bytes` more.
  bool is_beyond_order(int device, std::uint64_t bytes);
  // Called by the giver while the program makes no calls. Applies thresholds and orders, and publishes the figures.
  void look_after() noexcept;
  // Starts the giver's threads. Called as soon as a pool exists, because the program may forbid new threads later.
  void start_giving() noexcept { giver_.start(); }
  // Called at the end of the process and at the end of its main thread.
  void stop_giving() noexcept { giver_.stop(); }
  void end_giving() noexcept { giver_.end(Giver::kLastGiftNs); }

 private:
  const PoolParts parts_;
  DevicePools &pools_;
  Publication &publication_;
  Returning &returning_;
  Room &room_;
  std::atomic<std::uint64_t> gave_ns_[ledger::kMaxDevices] = {};
  Giver giver_{*this, parts_.ledger};  // declared last: its threads end first
};

}  // namespace ration::policy
