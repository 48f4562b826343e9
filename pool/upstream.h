// Where a pool's memory comes from. The pool knows this door and nothing behind it.
// Layer: pool, a leaf (standard library only). Threads: called without the pool's lock. collect(), wait() and shrink()
// may run on several threads at once; at most one thread at a time is in grow() for one pool.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/granule.h"

namespace ration::pool {

// One allocation of the upstream, at most kMaximumBytes long. The id is the upstream's own word for it.
struct Slab {
  Address address;
  std::uint64_t bytes;
  std::uint64_t id;
};

class Upstream {
 public:
  Upstream() = default;
  Upstream(const Upstream &) = delete;
  Upstream &operator=(const Upstream &) = delete;
  virtual ~Upstream() = default;

  // Without waiting for the device: gives to the pool (reclaim) what was retired and has become clean; whether it gave
  // any. REQUIRES, of wait() too: no `false` while another thread is about to give what this one would have found.
  virtual bool collect() noexcept = 0;
  // A new slab of at least `minimum_bytes` (the pool has added what its own book-keeping takes), or nothing. May call
  // the pool, give_back() included, but not allocate().
  virtual std::optional<Slab> grow(std::uint64_t minimum_bytes) noexcept = 0;
  // Takes back a slab that this upstream gave and that is wholly free.
  virtual void shrink(const Slab &slab) noexcept = 0;
  // Waits for retired blocks that may still be in use, and gives to the pool what has become clean. Returns whether it
  // may have given any; false ends the pool's retry.
  virtual bool wait() noexcept = 0;
};

// Nothing can be had from here, and what is given back is forgotten.
class NoUpstream : public Upstream {
 public:
  bool collect() noexcept override { return false; }
  std::optional<Slab> grow(std::uint64_t) noexcept override { return std::nullopt; }
  void shrink(const Slab &) noexcept override {}
  bool wait() noexcept override { return false; }
};

}  // namespace ration::pool
