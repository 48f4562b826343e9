// The interface through which a pool obtains its memory.
// Layer: pool, a leaf (standard library only). Threads: called without the pool's lock. collect(), wait() and shrink()
// may run on several threads at once; at most one thread at a time is in grow() for one pool.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/unit.h"

namespace ration::pool {

// One piece of the upstream's memory, at most kMaximumBytes long. This is a slab, whose id the upstream chooses, or, if
// the pool stitches, a granule, whose id is the handle of its physical memory and whose address is 0.
struct Slab {
  Address address;
  std::uint64_t bytes;
  std::uint64_t id;
};

// The memory that a pool asks its upstream for.
struct GrowthWish {
  // For slabs: the least size of the one slab, which needs a unit more if it does not start on a unit boundary. For
  // merge(): the bytes that were released; the new slab may have any size. For granules: their total.
  std::uint64_t bytes;
  std::uint64_t piece_bytes = UINT64_MAX;  // the largest granule, unless the bytes are available only in one piece
  bool at_once = false;                    // only memory that can be obtained without effort
};

namespace stitch {
class DeviceMemory;
}

class Upstream {
 public:
  Upstream() = default;
  Upstream(const Upstream &) = delete;
  Upstream &operator=(const Upstream &) = delete;
  virtual ~Upstream() = default;

  // Reclaims retired blocks that have become clean, without waiting for the device. Returns true if it reclaimed any.
  // REQUIRES, as for wait(): never false while another thread is about to reclaim what this call would have found.
  virtual bool collect() noexcept = 0;
  // Returns all the memory that `wish` asks for, or none. May call the pool, including give_back(), but not allocate().
  virtual std::vector<Slab> grow(const GrowthWish &wish) noexcept = 0;
  // Waits for retired blocks that may still be in use, and reclaims those that have become clean. Returns true if it
  // may have reclaimed any; false ends the pool's retries.
  virtual bool wait() noexcept = 0;
  // Takes back a wholly free slab or a granule that this upstream provided.
  virtual void shrink(const Slab &piece) noexcept = 0;
  // For pools that stitch: the driver calls that their plans need; nullptr if host memory has run out.
  virtual stitch::DeviceMemory *memory() noexcept { return nullptr; }
};

// Provides no memory and ignores returned slabs.
class NoUpstream : public Upstream {
 public:
  bool collect() noexcept override { return false; }
  std::vector<Slab> grow(const GrowthWish &) noexcept override { return {}; }
  bool wait() noexcept override { return false; }
  void shrink(const Slab &) noexcept override {}
};

}  // namespace ration::pool
