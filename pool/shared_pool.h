// A Pool for several threads that asks an upstream when it has no room.
// Layer: pool, a leaf (standard library only). Threads: everything may be called from any thread; one innermost lock,
// never held across the upstream. Owns: the pool. Slabs are not given back at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "pool/lock.h"
#include "pool/pool.h"
#include "pool/upstream.h"

namespace ration::pool {

class SharedPool {
 public:
  // The largest request for which the upstream is asked: with what the pool adds, no slab could be larger.
  static constexpr std::uint64_t kMostBytes = kMaximumBytes - 2 * kGranuleBytes;

  SharedPool() : SharedPool(nullptr) {}
  // With a lock that others can take before they know that the pool still lives; nullptr: its own.
  explicit SharedPool(Mutex *lock) : mutex_(lock != nullptr ? *lock : own_) {}
  SharedPool(const SharedPool &) = delete;
  SharedPool &operator=(const SharedPool &) = delete;

  // Without room: collects what has become clean, grows, waits for what is not clean yet, each as often as it helps;
  // then answers kNoRoom. One thread grows at a time and the others wait for it, so that nobody is refused while memory
  // is on its way to the pool, or from it to the upstream.
  AllocateOutcome allocate(std::uint64_t bytes, Upstream &upstream) noexcept;
  FreeOutcome free(Address address) noexcept;
  FreeOutcome retire(Address address) noexcept;
  FreeOutcome reclaim(Address address) noexcept;
  // Several of them under one lock; what was reclaimed.
  struct Reclaimed {
    std::uint64_t blocks;
    std::uint64_t bytes;
  };
  Reclaimed reclaim(const Address *addresses, std::size_t count) noexcept;
  [[nodiscard]] std::optional<Block> find(Address address) const noexcept;
  std::uint64_t name(Address address, std::uint64_t fresh) noexcept;
  bool mark(Address address, bool marked) noexcept;
  [[nodiscard]] bool is_marked(Address address) const noexcept;
  [[nodiscard]] std::optional<Slab> slab_of(Address address) const noexcept;
  // As in Pool. Each call is one look under the lock: what others do between two of them shows or does not.
  std::size_t live_blocks(Address from, Block *blocks, std::size_t count) const noexcept;
  std::size_t slabs(Address from, Slab *slabs, std::size_t count) const noexcept;

  // For a caller that holds the lock because it has more to do under it than this. Never asks the upstream.
  void assert_locked() const RATION_POOL_ANNOTATE(assert_capability(mutex_)) {}
  AllocateOutcome allocate_locked(std::uint64_t bytes) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.allocate(bytes);
  }
  FreeOutcome free_locked(Address address) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.free(address);
  }
  FreeOutcome reclaim_locked(Address address) noexcept RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.reclaim(address);
  }
  FreeOutcome retire_locked(Address address, std::uint64_t most = UINT64_MAX) noexcept
      RATION_POOL_ANNOTATE(requires_capability(mutex_)) {
    return pool_.retire(address, most);
  }

  // For memory that is obtained ahead of the first request.
  AddSlabOutcome add_slab(const Slab &slab) noexcept;
  // Returns every wholly free slab to the upstream; the bytes that it got back. Never waits for another thread, so it
  // may be called from grow(), this pool's or another's.
  std::uint64_t give_back(Upstream &upstream) noexcept;

  bool reserve(std::size_t blocks) noexcept;
  [[nodiscard]] Statistics statistics() noexcept;
  [[nodiscard]] std::string check_invariants() const;

 private:
  AllocateOutcome hit(std::uint64_t bytes) noexcept;
  [[gnu::cold, gnu::noinline]] AllocateOutcome allocate_from(Upstream &upstream, std::uint64_t bytes) noexcept;
  AllocateOutcome grow_for(std::uint64_t bytes, Upstream &upstream) noexcept;

  Mutex own_;
  Mutex &mutex_;
  Condition changed_;  // of grower_ or returned_
  Pool pool_ RATION_POOL_ANNOTATE(guarded_by(mutex_));
  std::thread::id grower_ RATION_POOL_ANNOTATE(guarded_by(mutex_));  // nobody by default
  // Slabs that others than the grower took out of the pool, and those of them that the upstream has.
  std::uint64_t removed_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = 0;
  std::uint64_t returned_ RATION_POOL_ANNOTATE(guarded_by(mutex_)) = 0;
};

}  // namespace ration::pool
