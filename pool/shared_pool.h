// A Pool for several threads that asks its upstream when it has no room.
// Layer: pool, a leaf (standard library only). Threads: everything may be called from any thread; one innermost lock,
// never held across the upstream. Owns: the pool; the upstream must outlive it. Slabs are not given back at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pool/lock.h"
#include "pool/pool.h"
#include "pool/upstream.h"

namespace ration::pool {

class SharedPool {
 public:
  explicit SharedPool(Upstream &upstream) : upstream_(upstream) {}
  SharedPool(const SharedPool &) = delete;
  SharedPool &operator=(const SharedPool &) = delete;

  // Without room: waits for freed blocks to become clean, then grows, then answers kNoRoom.
  AllocateOutcome allocate(std::uint64_t bytes) noexcept;
  FreeOutcome free(Address address) noexcept;
  [[nodiscard]] std::optional<Block> find(Address address) const noexcept;
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const noexcept;

  // For memory that is obtained ahead of the first request.
  AddSlabOutcome add_slab(const Slab &slab) noexcept;
  // Returns every wholly free slab to the upstream; the bytes that it got back.
  std::uint64_t give_back() noexcept;

  bool reserve(std::size_t blocks) noexcept;
  [[nodiscard]] Statistics statistics() const noexcept;
  [[nodiscard]] std::string check_invariants() const;

 private:
  AllocateOutcome grow_for(std::uint64_t bytes) noexcept;

  Upstream &upstream_;
  mutable Mutex mutex_;
  Pool pool_ RATION_POOL_ANNOTATE(guarded_by(mutex_));
};

}  // namespace ration::pool
