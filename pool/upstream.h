// The interface through which a pool obtains its memory.
// Layer: pool, a leaf (standard library only). Threads: called without the pool's lock. collect(), wait() and shrink()
// may run on several threads at once; at most one thread at a time is in grow() for one pool.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/unit.h"

namespace ration::pool {

// One piece of the upstream's memory, at most kMaximumBytes long: a slab, whose id the upstream chooses; or, of a pool
// that stitches, a granule: its id is the handle of physical memory, its address 0.
struct Slab {
  Address address;
  std::uint64_t bytes;
  std::uint64_t id;
};

// What a pool lacks.
struct GrowthWish {
  // One slab of at least so much, and a unit more if it does not start on one; for merge(), what was released, and a
  // slab of any size. Or granules of so much together.
  std::uint64_t bytes;
  std::uint64_t piece_bytes = UINT64_MAX;  // no granule is larger, unless all can only be had in one
  bool at_once = false;                    // only what can be had without an effort
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

  // Reclaims retired blocks that have become clean, without waiting for the device; returns whether it reclaimed any.
  // REQUIRES, also of wait(): not `false` while another thread is about to reclaim what this call would have found.
  virtual bool collect() noexcept = 0;
  // All that is wished for, or nothing. May call the pool, give_back() included, but not allocate().
  virtual std::vector<Slab> grow(const GrowthWish &wish) noexcept = 0;
  // Waits for retired blocks that may still be in use, and reclaims those that have become clean. Returns whether it
  // may have reclaimed any; false ends the pool's retries.
  virtual bool wait() noexcept = 0;
  // Takes back a wholly free slab, or a granule, of this upstream.
  virtual void shrink(const Slab &piece) noexcept = 0;
  // Of a pool that stitches: the driver's calls for its plans. nullptr: the host has no memory.
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
