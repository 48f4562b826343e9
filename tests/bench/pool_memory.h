// The pool alone as the measured memory: a SharedPool with one slab and no upstream.
// Threads: PoolMemory like SharedPool, QuarantinedMemory one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "pool/shared_pool.h"

namespace ration::bench {

class PoolMemory {
 public:
  explicit PoolMemory(std::uint64_t slab_bytes) {
    constexpr pool::Address kSlabAddress = 0x7f00'0000'0000;
    if (pool_.add_slab({kSlabAddress, slab_bytes, 1}) != pool::AddSlabOutcome::kAdded) {
      throw std::runtime_error("the pool rejects the slab");
    }
  }
  // Returns a quarter more than the peak of live bytes.
  static std::uint64_t slab_bytes_for(std::uint64_t peak_bytes) { return peak_bytes + peak_bytes / 4; }

  std::uintptr_t allocate(std::uint64_t bytes) {
    const pool::AllocateOutcome outcome = pool_.allocate(bytes, upstream_);
    if (!outcome) throw std::runtime_error("the slab is too small for what is measured");
    return outcome.block.address;
  }
  void free(std::uintptr_t block) {
    if (!pool_.free(block)) throw std::logic_error("the pool does not know its block");
  }
  void retire(std::uintptr_t block) {
    if (!pool_.retire(block)) throw std::logic_error("the pool does not know its block");
  }
  void reclaim(std::uintptr_t block) {
    if (!pool_.reclaim(block)) throw std::logic_error("the pool does not know its retired block");
  }
  [[nodiscard]] pool::Statistics statistics() { return pool_.statistics(); }

 private:
  pool::SharedPool pool_;
  pool::NoUpstream upstream_;
};

// The pool as the library uses it: retires freed blocks and reclaims many at once.
class QuarantinedMemory {
 public:
  explicit QuarantinedMemory(std::uint64_t slab_bytes) : memory_(slab_bytes) { retired_.reserve(kAtOnce); }

  std::uintptr_t allocate(std::uint64_t bytes) { return memory_.allocate(bytes); }
  void free(std::uintptr_t block) {
    memory_.retire(block);
    retired_.push_back(block);
    if (retired_.size() < kAtOnce) return;
    for (const std::uintptr_t retired : retired_) memory_.reclaim(retired);
    retired_.clear();
  }

 private:
  static constexpr std::size_t kAtOnce = 1024;  // as policy::Quarantine seals them
  PoolMemory memory_;
  std::vector<std::uintptr_t> retired_;
};

}  // namespace ration::bench
