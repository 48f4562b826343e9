// Slabs that no block is in become one slab, as a driver's free leaves no borders between what is free.
// Layer: policy/block_pool. Threads: any; waits briefly for what was freed to be clean.
// Design: design/granules.md#merging-slabs
#pragma once

#include <atomic>
#include <cstdint>

#include "policy/block_pool/backing.h"

namespace ration::policy {

class SlabMerger {
 public:
  explicit SlabMerger(FenceTracker &fences, events::Journal &journal) : fences_(fences), journal_(journal) {}

  // Before one of few blocks that fit is placed: what was freed becomes clean where the block would else lie beside it,
  // and free slabs that could hold more of them as one slab become one.
  void prepare(const PoolCall &call);

 private:
  void merge(const PoolCall &call, std::uint64_t expected, std::uint64_t merged);
  void clean(const PoolCall &call);

  FenceTracker &fences_;
  events::Journal &journal_;
  std::atomic<std::uint64_t> waited_ns_[ledger::kMaxDevices] = {};  // when a request last waited for slabs to merge
};

}  // namespace ration::policy
