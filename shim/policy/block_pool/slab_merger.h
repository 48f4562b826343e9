// Merges empty slabs into one, because the driver alone would not leave freed memory divided either.
// Layer: policy/block_pool. Threads: any; waits briefly until freed memory is clean.
// Design: design/granules.md#merging-slabs
#pragma once

#include <atomic>
#include <cstdint>

#include "policy/block_pool/backing.h"

namespace ration::policy {

class SlabMerger {
 public:
  explicit SlabMerger(FenceTracker &fences, events::Journal &journal) : fences_(fences), journal_(journal) {}

  // Called before placing a block so large that few fit. Cleans freed memory if the block would otherwise be placed
  // next to it, and merges free slabs if one slab could hold more such blocks.
  void prepare(const PoolCall &call);

 private:
  void merge(const PoolCall &call, std::uint64_t expected, std::uint64_t merged);
  void clean(const PoolCall &call);

  FenceTracker &fences_;
  events::Journal &journal_;
  std::atomic<std::uint64_t> waited_ns_[ledger::kMaxDevices] = {};  // when a request last waited for slabs to merge
};

}  // namespace ration::policy
