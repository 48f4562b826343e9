// The pool of one context life: its blocks, and what its growth remembers.
// Layer: policy. Threads: any. Owns: the pool's books; its slabs are the driver's and go with the context.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/wait.h"
#include "policy/block_pool/fast_path.h"
#include "pool/shared_pool.h"

namespace ration::policy {

struct Context;

// No block can use the rest, and a driver rounds its bytes up, beyond a limit that they reach.
constexpr std::uint64_t whole_granules(std::uint64_t bytes) {
  return bytes / pool::kGranuleBytes * pool::kGranuleBytes;
}

// How a slab that is refused backs off: the step of the BFC allocator that JAX and TensorFlow users know.
constexpr std::uint64_t nine_tenths(std::uint64_t bytes) {
  return bytes - bytes / 10 - 1;
}

class ContextPool {
 public:
  // The smallest slab of a pool that grows: the driver's own page for large allocations.
  static constexpr std::uint64_t kFirstSlabBytes = 2U << 20U;

  explicit ContextPool(Context &owner, FastPaths::Claim claimed = {})
      : context(owner), claim(std::move(claimed)), blocks(claim.path() != nullptr ? &claim.path()->mutex() : nullptr) {}
  ContextPool(const ContextPool &) = delete;
  ContextPool &operator=(const ContextPool &) = delete;

  Context &context;
  const FastPaths::Claim claim;  // outlives the blocks, which it lends its lock
  pool::SharedPool blocks;
  // A call between a change to the blocks and its record. Whoever records the end of the whole pool waits for it.
  class InFlight {
   public:
    explicit InFlight(ContextPool &pool) : pool_(pool) { pool_.in_flight.fetch_add(1); }
    ~InFlight() {
      pool_.in_flight.fetch_sub(1);
      wake_waiters();
    }
    InFlight(const InFlight &) = delete;
    InFlight &operator=(const InFlight &) = delete;

   private:
    ContextPool &pool_;
  };
  // Counted before the context's end is looked at; the end is set before this is: seq_cst both.
  std::atomic<int> in_flight{0};
  // Blocks that other processes may have open, or are about to (exports.h): a free of any block then asks.
  std::atomic<int> shared{0};
  // Its context is gone and nothing is taken into quarantine any more; written under the quarantine's lock.
  std::atomic<bool> closed{false};
};

}  // namespace ration::policy
