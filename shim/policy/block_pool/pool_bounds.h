// Says how much the pools of one device may take, and how much they leave alone. Mode async also uses these bounds.
// Layer: policy/block_pool. Threads: any; an answer may be out of date when it is used.
#pragma once

#include <cstdint>

#include "ledger/ledger.h"
#include "policy/contexts/contexts.h"
#include "policy/devices/devices.h"

namespace ration::policy {

class PoolBounds {
 public:
  PoolBounds(Devices &devices, ledger::Ledger &ledger, Contexts &contexts, int device)
      : plan(devices.preallocation_on(device)),
        devices_(devices),
        account_(ledger.account(device)),
        contexts_(contexts),
        device_(device) {}

  const Preallocation plan;

  // The limit, or the device's size if that is smaller.
  std::uint64_t most_bytes() const;
  // A pool that may grow does not ask the driver what is clean while fewer bytes than this are in quarantine.
  std::uint64_t slack_bytes() const;
  // Whether so few blocks of that size fit under the limit that it matters where each lies.
  bool is_of_few(std::uint64_t bytes) const { return bytes >= most_bytes() / 128; }
  // Whether a block of that size should be a separate driver allocation, rather than cause a pool to take a slab, or a
  // driver's pool to take a chunk. A slab or chunk cannot go to other processes while a small block is in it.
  // Design: design/groups.md#parts
  bool strands_others(std::uint64_t bytes) const { return bytes >= kLeastAlone && account_.neighbours() != 0; }
  // Whether anything is left of a limit; touches no shared memory.
  bool has_rest() const;
  // The unreserved rest of the limit, if this process is its only user. 0 in a group, or without a limit.
  std::uint64_t rest_of_limit() const;
  // The part of `free_bytes` that a preallocation according to `planned` leaves alone. Throws bad_alloc.
  std::uint64_t headroom(const Preallocation &planned, std::uint64_t free_bytes) const;
  // The device's free memory beyond that headroom; asks the driver.
  std::uint64_t free_beyond_headroom() const;

 private:
  static constexpr std::uint64_t kLeastAlone = 1U << 20U;

  Devices &devices_;
  ledger::Account &account_;
  Contexts &contexts_;
  const int device_;
};

}  // namespace ration::policy
