// The interface through which a pool obtains its memory.
// Layer: pool, a leaf (standard library only). Threads: called without the pool's lock. collect(), wait() and shrink()
// may run on several threads at once; at most one thread at a time is in grow() for one pool.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/unit.h"

namespace ration::pool {

// One allocation of the upstream, at most kMaximumBytes long. The upstream chooses the id.
struct Slab {
  Address address;
  std::uint64_t bytes;
  std::uint64_t id;
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
  // A new slab of at least `minimum_bytes`, and a unit more if it does not start on one, or none. (For merge() of
  // any size: `minimum_bytes` is what was released.) May call the pool, give_back() included, but not allocate().
  virtual std::optional<Slab> grow(std::uint64_t minimum_bytes) noexcept = 0;
  // Of a pool that stitches: a handle of physical memory instead, which is the slab's id; its address is 0. The driver
  // calls for it; and what grow() could have now without an effort.
  virtual stitch::DeviceMemory *memory() noexcept { return nullptr; }
  virtual std::uint64_t room() noexcept { return 0; }
  // The next handle where `bytes` in all are wanted: of at most `most_bytes`, unless all can only be had in one. What
  // the caller does not ask for again goes back.
  virtual std::optional<Slab> grow_by_part(std::uint64_t bytes, [[maybe_unused]] std::uint64_t most_bytes) noexcept {
    return grow(bytes);
  }
  // Takes back a wholly free slab of this upstream.
  virtual void shrink(const Slab &slab) noexcept = 0;
  // Waits for retired blocks that may still be in use, and reclaims those that have become clean. Returns whether it
  // may have reclaimed any; false ends the pool's retries.
  virtual bool wait() noexcept = 0;
};

// Provides no memory and ignores returned slabs.
class NoUpstream : public Upstream {
 public:
  bool collect() noexcept override { return false; }
  std::optional<Slab> grow(std::uint64_t) noexcept override { return std::nullopt; }
  void shrink(const Slab &) noexcept override {}
  bool wait() noexcept override { return false; }
};

}  // namespace ration::pool
