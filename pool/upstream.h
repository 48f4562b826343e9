// Where a pool's memory comes from. The pool knows this door and nothing behind it.
// Layer: pool, a leaf (standard library only). Threads: called without the pool's lock, possibly from several threads.
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

  // A new slab of at least `minimum_bytes` (the pool has added what its own book-keeping takes), or nothing.
  virtual std::optional<Slab> grow(std::uint64_t minimum_bytes) noexcept = 0;
  // Takes back a slab that this upstream gave and that is wholly free.
  virtual void shrink(std::uint64_t slab) noexcept = 0;
  // Waits for blocks that were freed but may still be in use, and gives to the pool what has become clean. Returns
  // whether it gave any; false ends the pool's retry.
  virtual bool wait() noexcept = 0;
};

}  // namespace ration::pool
